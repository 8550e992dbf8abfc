// RUN: plait-opt %s -p canonicalize | filecheck %s
// RUN: plait-opt %s -p canonicalize,canonicalize | filecheck %s

// CHECK-LABEL: func.func @reshapes(
// CHECK-NEXT:    %[[R:.*]] = lazy.reshape %x : tensor<4x6xf32> -> tensor<3x8xf32>
// CHECK-NEXT:    func.return %[[R]]
func.func @reshapes(%x: tensor<4x6xf32>) -> tensor<3x8xf32> {
  %0 = lazy.reshape %x : tensor<4x6xf32> -> tensor<24xf32>
  %1 = lazy.reshape %0 : tensor<24xf32> -> tensor<3x8xf32>
  return %1 : tensor<3x8xf32>
}

// CHECK-LABEL: func.func @there_and_back(
// CHECK-NEXT:    func.return %x
func.func @there_and_back(%x: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %0 = lazy.permute %x permutation = [1, 0] : tensor<4x6xf32> -> tensor<6x4xf32>
  %1 = lazy.permute %0 permutation = [1, 0] : tensor<6x4xf32> -> tensor<4x6xf32>
  return %1 : tensor<4x6xf32>
}

// CHECK-LABEL: func.func @axis_of_one(
// CHECK-NEXT:    %[[R:.*]] = lazy.reshape %x : tensor<4x1x6xf32> -> tensor<1x4x6xf32>
// CHECK-NEXT:    func.return %[[R]]
func.func @axis_of_one(%x: tensor<4x1x6xf32>) -> tensor<1x4x6xf32> {
  %0 = lazy.permute %x permutation = [1, 0, 2] : tensor<4x1x6xf32> -> tensor<1x4x6xf32>
  return %0 : tensor<1x4x6xf32>
}

// CHECK-LABEL: func.func @expands(
// CHECK-NEXT:    %[[R:.*]] = lazy.expand %x : tensor<1x1xf32> -> tensor<4x6xf32>
// CHECK-NEXT:    func.return %[[R]]
func.func @expands(%x: tensor<1x1xf32>) -> tensor<4x6xf32> {
  %0 = lazy.expand %x : tensor<1x1xf32> -> tensor<4x1xf32>
  %1 = lazy.expand %0 : tensor<4x1xf32> -> tensor<4x6xf32>
  return %1 : tensor<4x6xf32>
}

// CHECK-LABEL: func.func @slices(
// CHECK-NEXT:    %[[R:.*]] = lazy.slice %x starts = [5] stops = [18] steps = [6] : tensor<24xf32> -> tensor<3xf32>
// CHECK-NEXT:    func.return %[[R]]
func.func @slices(%x: tensor<24xf32>) -> tensor<3xf32> {
  %0 = lazy.slice %x starts = [2] stops = [23] steps = [3] : tensor<24xf32> -> tensor<7xf32>
  %1 = lazy.slice %0 starts = [1] stops = [7] steps = [2] : tensor<7xf32> -> tensor<3xf32>
  return %1 : tensor<3xf32>
}

// CHECK-LABEL: func.func @flips(
// CHECK-NEXT:    %[[R:.*]] = lazy.flip %x axes = [0] : tensor<4x6xf32> -> tensor<4x6xf32>
// CHECK-NEXT:    func.return %[[R]]
func.func @flips(%x: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %0 = lazy.flip %x axes = [0, 1] : tensor<4x6xf32> -> tensor<4x6xf32>
  %1 = lazy.flip %0 axes = [1] : tensor<4x6xf32> -> tensor<4x6xf32>
  return %1 : tensor<4x6xf32>
}

// CHECK-LABEL: func.func @pads(
// CHECK-NEXT:    %[[R:.*]] = lazy.pad %x low = [3] high = [1] interior = [1] value = 0.000000e+00 : f32 : tensor<4xf32> -> tensor<11xf32>
// CHECK-NEXT:    func.return %[[R]]
func.func @pads(%x: tensor<4xf32>) -> tensor<11xf32> {
  %0 = lazy.pad %x low = [1] high = [1] interior = [1] value = 0.0 : f32 : tensor<4xf32> -> tensor<9xf32>
  %1 = lazy.pad %0 low = [2] high = [0] interior = [0] value = 0.0 : f32 : tensor<9xf32> -> tensor<11xf32>
  return %1 : tensor<11xf32>
}

// Pads with different values stay apart.
// CHECK-LABEL: func.func @other_pads(
// CHECK-COUNT-2: lazy.pad
func.func @other_pads(%x: tensor<4xf32>) -> tensor<6xf32> {
  %0 = lazy.pad %x low = [1] high = [0] interior = [0] value = 0.0 : f32 : tensor<4xf32> -> tensor<5xf32>
  %1 = lazy.pad %0 low = [1] high = [0] interior = [0] value = 1.0 : f32 : tensor<5xf32> -> tensor<6xf32>
  return %1 : tensor<6xf32>
}

// CHECK-LABEL: func.func @reduce_of_ones(
// CHECK-NEXT:    %[[R:.*]] = lazy.reshape %x : tensor<4x1xf32> -> tensor<4xf32>
// CHECK-NEXT:    func.return %[[R]]
func.func @reduce_of_ones(%x: tensor<4x1xf32>) -> tensor<4xf32> {
  %0 = lazy.reduce max %x axes = [1] : tensor<4x1xf32> -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// CHECK-LABEL: func.func @constants(
// CHECK-NEXT:    %[[C:.*]] = lazy.constant dense<6.000000e+00> : tensor<f32>
// CHECK-NEXT:    func.return %[[C]]
func.func @constants() -> tensor<f32> {
  %a = lazy.constant dense<1.5> : tensor<4xf32>
  %b = lazy.add %a, %a : tensor<4xf32>
  %c = lazy.slice %b starts = [0] stops = [2] steps = [1] : tensor<4xf32> -> tensor<2xf32>
  %d = lazy.reduce sum %c axes = [0] : tensor<2xf32> -> tensor<f32>
  return %d : tensor<f32>
}

// CHECK-LABEL: func.func @constant_to_the_right(
// CHECK:         lazy.mul %x, %{{.*}} : tensor<4xf32>
func.func @constant_to_the_right(%x: tensor<4xf32>) -> tensor<4xf32> {
  %c = lazy.constant dense<2.0> : tensor<4xf32>
  %0 = lazy.mul %c, %x : tensor<4xf32>
  return %0 : tensor<4xf32>
}

// x * 1 is x; x + 0 is not for x = -0.
// CHECK-LABEL: func.func @identities(
// CHECK-NOT:     lazy.mul
// CHECK:         lazy.add
// CHECK-NOT:     lazy.sub
// CHECK:         func.return
func.func @identities(%x: tensor<4xf32>) -> tensor<4xf32> {
  %one = lazy.constant dense<1.0> : tensor<4xf32>
  %zero = lazy.constant dense<0.0> : tensor<4xf32>
  %0 = lazy.mul %x, %one : tensor<4xf32>
  %1 = lazy.add %0, %zero : tensor<4xf32>
  %2 = lazy.sub %1, %zero : tensor<4xf32>
  return %2 : tensor<4xf32>
}

// A cast to the same type, a choice between equals, a double complement.
// CHECK-LABEL: func.func @nothing(
// CHECK-NEXT:    func.return %x, %x, %m
func.func @nothing(%x: tensor<4xf32>, %m: tensor<4xi1>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xi1>) {
  %0 = lazy.cast %x : tensor<4xf32> -> tensor<4xf32>
  %1 = lazy.select %m, %x, %x : tensor<4xi1>, tensor<4xf32>
  %2 = lazy.not %m : tensor<4xi1>
  %3 = lazy.not %2 : tensor<4xi1>
  return %0, %1, %3 : tensor<4xf32>, tensor<4xf32>, tensor<4xi1>
}
