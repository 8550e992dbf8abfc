// RUN: plait-opt %s -p lazy-simplify --split-input-file | filecheck %s
// RUN: plait-opt %s -p lazy-simplify,lazy-simplify --split-input-file | filecheck %s

// Equal operations are one, in whichever order commuting operands stand; neutral operands vanish.

// CHECK-LABEL: func.func @shared(
// CHECK-NEXT:    %[[A:.*]] = lazy.add %x, %y : tensor<4xf32>
// CHECK-NEXT:    %[[B:.*]] = lazy.mul %[[A]], %[[A]] : tensor<4xf32>
// CHECK-NEXT:    func.return %[[B]]
func.func @shared(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> {
  %zero = lazy.constant dense<0.0> : tensor<4xf32>
  %one = lazy.constant dense<1.0> : tensor<4xf32>
  %0 = lazy.add %x, %y : tensor<4xf32>
  %1 = lazy.add %y, %x : tensor<4xf32>
  %2 = lazy.add %1, %zero : tensor<4xf32>
  %3 = lazy.mul %2, %one : tensor<4xf32>
  %4 = lazy.mul %0, %3 : tensor<4xf32>
  func.return %4 : tensor<4xf32>
}

// -----

// The sum of a centred value is zero, also under a factor and next to other terms.

// CHECK-LABEL: func.func @centred(
// CHECK:         %[[S:.*]] = lazy.reduce sum %y axes = [1] : tensor<4x8xf32> -> tensor<4xf32>
// CHECK-NEXT:    func.return %[[S]]
func.func @centred(%x: tensor<4x8xf32>, %y: tensor<4x8xf32>, %z: tensor<4x1xf32>) -> tensor<4xf32> {
  %n = lazy.constant dense<0.125> : tensor<4xf32>
  %0 = lazy.reduce sum %x axes = [1] : tensor<4x8xf32> -> tensor<4xf32>
  %1 = lazy.mul %0, %n : tensor<4xf32>
  %2 = lazy.reshape %1 : tensor<4xf32> -> tensor<4x1xf32>
  %3 = lazy.expand %2 : tensor<4x1xf32> -> tensor<4x8xf32>
  %4 = lazy.sub %x, %3 : tensor<4x8xf32>
  %5 = lazy.expand %z : tensor<4x1xf32> -> tensor<4x8xf32>
  %6 = lazy.mul %4, %5 : tensor<4x8xf32>
  %7 = lazy.add %y, %6 : tensor<4x8xf32>
  %8 = lazy.reduce sum %7 axes = [1] : tensor<4x8xf32> -> tensor<4xf32>
  func.return %8 : tensor<4xf32>
}

// -----

// A sum of copies is a product, and reduces in a row are one.

// CHECK-LABEL: func.func @copies(
// CHECK-NOT:     lazy.expand
// CHECK:         lazy.mul
// CHECK-NEXT:    %[[R:.*]] = lazy.reduce sum %{{.*}} axes = [0]
// CHECK-NEXT:    func.return %[[R]]
func.func @copies(%x: tensor<4xf32>) -> tensor<f32> {
  %0 = lazy.reshape %x : tensor<4xf32> -> tensor<4x1xf32>
  %1 = lazy.expand %0 : tensor<4x1xf32> -> tensor<4x8xf32>
  %2 = lazy.reduce sum %1 axes = [1] : tensor<4x8xf32> -> tensor<4xf32>
  %3 = lazy.reduce sum %2 axes = [0] : tensor<4xf32> -> tensor<f32>
  func.return %3 : tensor<f32>
}

// -----

// CHECK-LABEL: func.func @in_a_row(
// CHECK-NEXT:    %[[R:.*]] = lazy.reduce max %x axes = [0, 2] : tensor<4x6x8xf32> -> tensor<6xf32>
// CHECK-NEXT:    func.return %[[R]]
func.func @in_a_row(%x: tensor<4x6x8xf32>) -> tensor<6xf32> {
  %0 = lazy.reduce max %x axes = [2] : tensor<4x6x8xf32> -> tensor<4x6xf32>
  %1 = lazy.permute %0 permutation = [1, 0] : tensor<4x6xf32> -> tensor<6x4xf32>
  %2 = lazy.reduce max %1 axes = [1] : tensor<6x4xf32> -> tensor<6xf32>
  func.return %2 : tensor<6xf32>
}

// -----

// Counting, as tinygrad writes it: a triangle of ones made by padding and reshaping, summed.

// CHECK-LABEL: func.func @arange(
// CHECK-NOT:     lazy.reduce
// CHECK:         %[[I:.*]] = lazy.iota axis = 0 : tensor<6xi32>
// CHECK-NOT:     lazy.reduce
// CHECK:         func.return %[[I]]
func.func @arange() -> tensor<6xi32> {
  %0 = lazy.constant dense<1> : tensor<6xi32>
  %1 = lazy.pad %0 low = [5] high = [0] interior = [0] value = 0 : i32 : tensor<6xi32> -> tensor<11xi32>
  %2 = lazy.reshape %1 : tensor<11xi32> -> tensor<1x11xi32>
  %3 = lazy.expand %2 : tensor<1x11xi32> -> tensor<7x11xi32>
  %4 = lazy.reshape %3 : tensor<7x11xi32> -> tensor<77xi32>
  %5 = lazy.slice %4 starts = [0] stops = [72] steps = [1] : tensor<77xi32> -> tensor<72xi32>
  %6 = lazy.reshape %5 : tensor<72xi32> -> tensor<6x12xi32>
  %7 = lazy.slice %6 starts = [0, 0] stops = [6, 6] steps = [1, 1] : tensor<6x12xi32> -> tensor<6x6xi32>
  %8 = lazy.reduce sum %7 axes = [1] : tensor<6x6xi32> -> tensor<6xi32>
  %9 = lazy.constant dense<-1> : tensor<6xi32>
  %10 = lazy.add %8, %9 : tensor<6xi32>
  func.return %10 : tensor<6xi32>
}

// -----

// Views that undo each other vanish, also a concatenation that is sliced apart again.

// CHECK-LABEL: func.func @views(
// CHECK-NEXT:    func.return %x, %x
func.func @views(%x: tensor<4x6xf32>, %y: tensor<2x6xf32>) -> (tensor<4x6xf32>, tensor<4x6xf32>) {
  %0 = lazy.permute %x permutation = [1, 0] : tensor<4x6xf32> -> tensor<6x4xf32>
  %1 = lazy.flip %0 axes = [0] : tensor<6x4xf32> -> tensor<6x4xf32>
  %2 = lazy.permute %1 permutation = [1, 0] : tensor<6x4xf32> -> tensor<4x6xf32>
  %3 = lazy.flip %2 axes = [1] : tensor<4x6xf32> -> tensor<4x6xf32>
  %4 = lazy.concat %x, %y axis = 0 : tensor<4x6xf32>, tensor<2x6xf32> -> tensor<6x6xf32>
  %5 = lazy.slice %4 starts = [0, 0] stops = [4, 6] steps = [1, 1] : tensor<6x6xf32> -> tensor<4x6xf32>
  func.return %3, %5 : tensor<4x6xf32>, tensor<4x6xf32>
}

// -----

// A sum over a one-hot selection is a gather.

// CHECK-LABEL: func.func @one_hot(
// CHECK-NOT:     lazy.reduce
// CHECK:         lazy.gather %{{.*}}, %{{.*}} axis = 1 : tensor<5x9xf32>, tensor<5x1xi32> -> tensor<5x1xf32>
// CHECK-NOT:     lazy.reduce
// CHECK:         func.return
func.func @one_hot(%x: tensor<9xf32>, %i: tensor<5xi32>) -> tensor<5xf32> {
  %0 = lazy.iota axis = 1 : tensor<5x9xi32>
  %1 = lazy.reshape %i : tensor<5xi32> -> tensor<5x1xi32>
  %2 = lazy.expand %1 : tensor<5x1xi32> -> tensor<5x9xi32>
  %3 = lazy.compare eq %0, %2 : tensor<5x9xi32> -> tensor<5x9xi1>
  %4 = lazy.reshape %x : tensor<9xf32> -> tensor<1x9xf32>
  %5 = lazy.expand %4 : tensor<1x9xf32> -> tensor<5x9xf32>
  %6 = lazy.constant dense<0.0> : tensor<5x9xf32>
  %7 = lazy.select %3, %5, %6 : tensor<5x9xi1>, tensor<5x9xf32>
  %8 = lazy.reduce sum %7 axes = [1] : tensor<5x9xf32> -> tensor<5xf32>
  func.return %8 : tensor<5xf32>
}

// -----

// What a slice leaves out is not computed: it moves through elementwise operations and reduces.

// CHECK-LABEL: func.func @narrowed(
// CHECK-NEXT:    %[[X:.*]] = lazy.slice %x starts = [0, 0] stops = [4, 8] steps = [1, 1]
// CHECK-NEXT:    %[[S:.*]] = lazy.reduce sum %[[X]] axes = [1] : tensor<4x8xf32> -> tensor<4xf32>
// CHECK-NEXT:    %[[Y:.*]] = lazy.slice %y starts = [0] stops = [4] steps = [1]
// CHECK-NEXT:    %[[R:.*]] = lazy.add %[[S]], %[[Y]] : tensor<4xf32>
// CHECK-NEXT:    func.return %[[R]]
func.func @narrowed(%x: tensor<16x8xf32>, %y: tensor<16xf32>) -> tensor<4xf32> {
  %0 = lazy.reduce sum %x axes = [1] : tensor<16x8xf32> -> tensor<16xf32>
  %1 = lazy.add %0, %y : tensor<16xf32>
  %2 = lazy.slice %1 starts = [0] stops = [4] steps = [1] : tensor<16xf32> -> tensor<4xf32>
  func.return %2 : tensor<4xf32>
}

// -----

// A value that is read whole as well is computed whole.

// CHECK-LABEL: func.func @read_whole(
// CHECK:         %[[E:.*]] = lazy.exp %x : tensor<16xf32>
// CHECK:         lazy.slice %[[E]]
func.func @read_whole(%x: tensor<16xf32>) -> (tensor<16xf32>, tensor<4xf32>) {
  %0 = lazy.exp %x : tensor<16xf32>
  %1 = lazy.slice %0 starts = [0] stops = [4] steps = [1] : tensor<16xf32> -> tensor<4xf32>
  func.return %0, %1 : tensor<16xf32>, tensor<4xf32>
}

// -----

// A slice of nothing but padding is a constant.

// CHECK-LABEL: func.func @all_padding(
// CHECK-NEXT:    %[[C:.*]] = lazy.constant dense<2.000000e+00> : tensor<3xf32>
// CHECK-NEXT:    func.return %[[C]]
func.func @all_padding(%x: tensor<4xf32>) -> tensor<3xf32> {
  %0 = lazy.pad %x low = [0] high = [4] interior = [0] value = 2.0 : f32 : tensor<4xf32> -> tensor<8xf32>
  %1 = lazy.slice %0 starts = [5] stops = [8] steps = [1] : tensor<8xf32> -> tensor<3xf32>
  func.return %1 : tensor<3xf32>
}

// -----

// A scatter of one update a line into copies of one value is a selection, its sum the update.

// CHECK-LABEL: func.func @one_update(
// CHECK:         %[[I:.*]] = lazy.iota axis = 1 : tensor<4x6xi32>
// CHECK:         lazy.compare eq %[[I]]
// CHECK-NOT:     lazy.scatter
// CHECK-NOT:     lazy.reduce
// CHECK:         func.return
func.func @one_update(%i: tensor<4x1xi32>, %u: tensor<4x1xf32>) -> (tensor<4x6xf32>, tensor<4xf32>) {
  %d = lazy.constant dense<0.0> : tensor<4x6xf32>
  %0 = lazy.scatter add %d, %i, %u axis = 1 : tensor<4x6xf32>, tensor<4x1xi32>, tensor<4x1xf32> -> tensor<4x6xf32>
  %1 = lazy.neg %0 : tensor<4x6xf32>
  %2 = lazy.reduce sum %1 axes = [1] : tensor<4x6xf32> -> tensor<4xf32>
  func.return %0, %2 : tensor<4x6xf32>, tensor<4xf32>
}

// -----

// Several updates of a line, or a destination of several values, need the scatter.

// CHECK-LABEL: func.func @more_updates(
// CHECK-COUNT-2: lazy.scatter
func.func @more_updates(%d: tensor<4x6xf32>, %i: tensor<4x2xi32>, %j: tensor<4x1xi32>, %u: tensor<4x2xf32>, %v: tensor<4x1xf32>) -> (tensor<4x6xf32>, tensor<4x6xf32>) {
  %z = lazy.constant dense<0.0> : tensor<4x6xf32>
  %0 = lazy.scatter add %z, %i, %u axis = 1 : tensor<4x6xf32>, tensor<4x2xi32>, tensor<4x2xf32> -> tensor<4x6xf32>
  %1 = lazy.scatter add %d, %j, %v axis = 1 : tensor<4x6xf32>, tensor<4x1xi32>, tensor<4x1xf32> -> tensor<4x6xf32>
  func.return %0, %1 : tensor<4x6xf32>, tensor<4x6xf32>
}
