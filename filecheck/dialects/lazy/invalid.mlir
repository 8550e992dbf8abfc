// RUN: plait-opt %s --split-input-file --verify-diagnostics

// Every mistake the verifiers find, with both shapes where shapes disagree.

func.func @f(%x: tensor<4x6xf32>, %y: tensor<4x7xf32>, %i: tensor<4x6xi32>, %m: tensor<4x6xi1>) {
  // expected-error@below {{cannot reshape 4x6 (24 elements) to 5x5 (25 elements)}}
  %0 = lazy.reshape %x : tensor<4x6xf32> -> tensor<5x5xf32>
  return
}

// -----

func.func @f(%x: tensor<4x6xf32>, %y: tensor<4x7xf32>, %i: tensor<4x6xi32>, %m: tensor<4x6xi1>) {
  // expected-error@below {{[0, 0] is not a permutation of the 2 axes of shape 4x6}}
  %0 = lazy.permute %x permutation = [0, 0] : tensor<4x6xf32> -> tensor<4x4xf32>
  return
}

// -----

func.func @f(%x: tensor<4x6xf32>, %y: tensor<4x7xf32>, %i: tensor<4x6xi32>, %m: tensor<4x6xi1>) {
  // expected-error@below {{expected a result of shape 6x4, found 4x6}}
  %0 = lazy.permute %x permutation = [1, 0] : tensor<4x6xf32> -> tensor<4x6xf32>
  return
}

// -----

func.func @f(%x: tensor<4x6xf32>, %y: tensor<4x7xf32>, %i: tensor<4x6xi32>, %m: tensor<4x6xi1>) {
  // expected-error@below {{cannot expand 4x6 to 8x6}}
  %0 = lazy.expand %x : tensor<4x6xf32> -> tensor<8x6xf32>
  return
}

// -----

func.func @f(%x: tensor<4x6xf32>, %y: tensor<4x7xf32>, %i: tensor<4x6xi32>, %m: tensor<4x6xi1>) {
  // expected-error@below {{'low' must have one entry per axis of shape 4x6: expected 2, found 1}}
  %0 = lazy.pad %x low = [1] high = [0] interior = [0] value = 0.0 : f32 : tensor<4x6xf32> -> tensor<4x6xf32>
  return
}

// -----

func.func @f(%x: tensor<4x6xf32>, %y: tensor<4x7xf32>, %i: tensor<4x6xi32>, %m: tensor<4x6xi1>) {
  // expected-error@below {{has a negative amount}}
  %0 = lazy.pad %x low = [-1, 0] high = [0, 0] interior = [0, 0] value = 0.0 : f32 : tensor<4x6xf32> -> tensor<3x6xf32>
  return
}

// -----

func.func @f(%x: tensor<4x6xf32>, %y: tensor<4x7xf32>, %i: tensor<4x6xi32>, %m: tensor<4x6xi1>) {
  // expected-error@below {{expected a padding value of f32, found f64}}
  %0 = lazy.pad %x low = [0, 0] high = [0, 0] interior = [0, 0] value = 0.0 : f64 : tensor<4x6xf32> -> tensor<4x6xf32>
  return
}

// -----

func.func @f(%x: tensor<4x6xf32>, %y: tensor<4x7xf32>, %i: tensor<4x6xi32>, %m: tensor<4x6xi1>) {
  // expected-error@below {{slice 0:5:1 of axis 0 does not fit shape 4x6}}
  %0 = lazy.slice %x starts = [0, 0] stops = [5, 6] steps = [1, 1] : tensor<4x6xf32> -> tensor<5x6xf32>
  return
}

// -----

func.func @f(%x: tensor<4x6xf32>, %y: tensor<4x7xf32>, %i: tensor<4x6xi32>, %m: tensor<4x6xi1>) {
  // expected-error@below {{slice 0:4:0 of axis 0 does not fit}}
  %0 = lazy.slice %x starts = [0, 0] stops = [4, 6] steps = [0, 1] : tensor<4x6xf32> -> tensor<4x6xf32>
  return
}

// -----

func.func @f(%x: tensor<4x6xf32>, %y: tensor<4x7xf32>, %i: tensor<4x6xi32>, %m: tensor<4x6xi1>) {
  // expected-error@below {{flipped axis 2 is out of range for shape 4x6}}
  %0 = lazy.flip %x axes = [2] : tensor<4x6xf32> -> tensor<4x6xf32>
  return
}

// -----

func.func @f(%x: tensor<4x6xf32>, %y: tensor<4x7xf32>, %i: tensor<4x6xi32>, %m: tensor<4x6xi1>) {
  // expected-error@below {{repeats an axis}}
  %0 = lazy.flip %x axes = [0, 0] : tensor<4x6xf32> -> tensor<4x6xf32>
  return
}

// -----

func.func @f(%x: tensor<4x6xf32>, %y: tensor<4x7xf32>, %i: tensor<4x6xi32>, %m: tensor<4x6xi1>) {
  // expected-error@below {{a window of 7 elements (size 7, dilation 1) does not fit axis 1 of shape 4x6}}
  %0 = lazy.window %x axes = [1] sizes = [7] strides = [1] dilations = [1] : tensor<4x6xf32> -> tensor<4x0x7xf32>
  return
}

// -----

func.func @f(%x: tensor<4x6xf32>, %y: tensor<4x7xf32>, %i: tensor<4x6xi32>, %m: tensor<4x6xi1>) {
  // expected-error@below {{must be positive}}
  %0 = lazy.window %x axes = [1] sizes = [2] strides = [0] dilations = [1] : tensor<4x6xf32> -> tensor<4x5x2xf32>
  return
}

// -----

func.func @f(%x: tensor<4x6xf32>, %y: tensor<4x7xf32>, %i: tensor<4x6xi32>, %m: tensor<4x6xi1>) {
  // expected-error@below {{cannot concatenate 4x6 and 4x7 along axis 0}}
  %0 = lazy.concat %x, %y axis = 0 : tensor<4x6xf32>, tensor<4x7xf32> -> tensor<8x6xf32>
  return
}

// -----

func.func @f(%x: tensor<4x6xf32>, %y: tensor<4x7xf32>, %i: tensor<4x6xi32>, %m: tensor<4x6xi1>) {
  // expected-error@below {{lazy.exp works on floating-point elements, found i32}}
  %0 = lazy.exp %i : tensor<4x6xi32>
  return
}

// -----

func.func @f(%x: tensor<4x6xf32>, %y: tensor<4x7xf32>, %i: tensor<4x6xi32>, %m: tensor<4x6xi1>) {
  // expected-error@below {{lazy.neg works on numbers, not i1, found i1}}
  %0 = lazy.neg %m : tensor<4x6xi1>
  return
}

// -----

func.func @f(%x: tensor<4x6xf32>, %y: tensor<4x7xf32>, %i: tensor<4x6xi32>, %m: tensor<4x6xi1>) {
  // expected-error@below {{lazy.xor works on integer or i1 elements, found f32}}
  %0 = lazy.xor %x, %x : tensor<4x6xf32>
  return
}

// -----

func.func @f(%x: tensor<4x6xf32>, %y: tensor<4x7xf32>, %i: tensor<4x6xi32>, %m: tensor<4x6xi1>) {
  // expected-error@below {{expected a result of i1}}
  %0 = lazy.isnan %x : tensor<4x6xf32> -> tensor<4x6xi8>
  return
}

// -----

func.func @f(%x: tensor<4x6xf32>, %y: tensor<4x7xf32>, %i: tensor<4x6xi32>, %m: tensor<4x6xi1>) {
  // expected-error@below {{shapes differ: operand of shape 4x6, result of shape 6x4}}
  %0 = lazy.isnan %x : tensor<4x6xf32> -> tensor<6x4xi1>
  return
}

// -----

func.func @f(%x: tensor<4x6xf32>, %y: tensor<4x7xf32>, %i: tensor<4x6xi32>, %m: tensor<4x6xi1>) {
  // expected-error@below {{expected a result of i1}}
  %0 = lazy.compare lt %x, %x : tensor<4x6xf32> -> tensor<4x6xf32>
  return
}

// -----

func.func @f(%x: tensor<4x6xf32>, %y: tensor<4x7xf32>, %i: tensor<4x6xi32>, %m: tensor<4x6xi1>) {
  // expected-error@below {{expected a condition of i1}}
  %0 = lazy.select %i, %x, %x : tensor<4x6xi32>, tensor<4x6xf32>
  return
}

// -----

func.func @f(%x: tensor<4x6xf32>, %y: tensor<4x7xf32>, %i: tensor<4x6xi32>, %m: tensor<4x6xi1>) {
  // expected-error@below {{shapes differ: operand of shape 4x6, result of shape 4x5}}
  %0 = lazy.cast %x : tensor<4x6xf32> -> tensor<4x5xf16>
  return
}

// -----

func.func @f(%x: tensor<4x6xf32>, %y: tensor<4x7xf32>, %i: tensor<4x6xi32>, %m: tensor<4x6xi1>) {
  // expected-error@below {{cannot read the bits of f32 as f64: the widths differ}}
  %0 = lazy.bitcast %x : tensor<4x6xf32> -> tensor<4x6xf64>
  return
}

// -----

func.func @f(%x: tensor<4x6xf32>, %y: tensor<4x7xf32>, %i: tensor<4x6xi32>, %m: tensor<4x6xi1>) {
  // expected-error@below {{reduced axis 2 is out of range for shape 4x6}}
  %0 = lazy.reduce sum %x axes = [2] : tensor<4x6xf32> -> tensor<4xf32>
  return
}

// -----

func.func @f(%x: tensor<4x6xf32>, %y: tensor<4x7xf32>, %i: tensor<4x6xi32>, %m: tensor<4x6xi1>) {
  // expected-error@below {{expected a result of shape 4, found 6}}
  %0 = lazy.reduce sum %x axes = [1] : tensor<4x6xf32> -> tensor<6xf32>
  return
}

// -----

func.func @f(%x: tensor<4x6xf32>, %y: tensor<4x7xf32>, %i: tensor<4x6xi32>, %m: tensor<4x6xi1>) {
  // expected-error@below {{'any' reduces i1, found f32}}
  %0 = lazy.reduce any %x axes = [1] : tensor<4x6xf32> -> tensor<4xf32>
  return
}

// -----

func.func @f(%x: tensor<4x6xf32>, %y: tensor<4x7xf32>, %i: tensor<4x6xi32>, %m: tensor<4x6xi1>) {
  // expected-error@below {{'sum' reduces numbers; cast i1 first}}
  %0 = lazy.reduce sum %m axes = [1] : tensor<4x6xi1> -> tensor<4xi1>
  return
}

// -----

func.func @f(%x: tensor<4x6xf32>, %y: tensor<4x7xf32>, %i: tensor<4x6xi32>, %m: tensor<4x6xi1>) {
  // expected-error@below {{expected a result of integers, found f32}}
  %0 = lazy.argmax %x axis = 1 : tensor<4x6xf32> -> tensor<4xf32>
  return
}

// -----

func.func @f(%x: tensor<4x6xf32>, %y: tensor<4x7xf32>, %i: tensor<4x6xi32>, %m: tensor<4x6xi1>) {
  // expected-error@below {{scanned axis 3 is out of range for shape 4x6}}
  %0 = lazy.scan sum %x axis = 3 : tensor<4x6xf32> -> tensor<4x6xf32>
  return
}

// -----

func.func @f(%x: tensor<4x6xf32>, %y: tensor<4x7xf32>, %i: tensor<4x6xi32>, %m: tensor<4x6xi1>) {
  // expected-error@below {{lazy.scan works on numbers; cast i1 first}}
  %0 = lazy.scan sum %m axis = 0 : tensor<4x6xi1> -> tensor<4x6xi1>
  return
}

// -----

func.func @f(%x: tensor<4x6xf32>, %y: tensor<4x7xf32>, %i: tensor<4x6xi32>, %m: tensor<4x6xi1>) {
  // expected-error@below {{expected a result of shape 4x6, found 4x5}}
  %0 = lazy.gather %x, %i axis = 1 : tensor<4x6xf32>, tensor<4x6xi32> -> tensor<4x5xf32>
  return
}

// -----

func.func @f(%x: tensor<4x6xf32>, %y: tensor<4x7xf32>, %i: tensor<4x6xi32>, %m: tensor<4x6xi1>) {
  // expected-error@below {{expected integer indices, found f32}}
  %0 = lazy.gather %x, %y axis = 1 : tensor<4x6xf32>, tensor<4x7xf32> -> tensor<4x7xf32>
  return
}

// -----

func.func @f(%x: tensor<4x6xf32>, %y: tensor<4x7xf32>, %i: tensor<4x6xi32>, %m: tensor<4x6xi1>) {
  // expected-error@below {{indices of shape 4x6 and updates of shape 4x7 must have the same shape}}
  %0 = lazy.scatter add %x, %i, %y axis = 1 : tensor<4x6xf32>, tensor<4x6xi32>, tensor<4x7xf32> -> tensor<4x6xf32>
  return
}

// -----

func.func @f(%x: tensor<4x6xf32>, %y: tensor<4x7xf32>, %i: tensor<4x6xi32>, %m: tensor<4x6xi1>) {
  // expected-error@below {{counted axis 2 is out of range for shape 4x6}}
  %0 = lazy.iota axis = 2 : tensor<4x6xi64>
  return
}

// -----

func.func @f(%x: tensor<4x6xf32>, %y: tensor<4x7xf32>, %i: tensor<4x6xi32>, %m: tensor<4x6xi1>) {
  // expected-error@below {{lazy.iota counts in numbers, found i1}}
  %0 = lazy.iota axis = 0 : tensor<4x6xi1>
  return
}

// -----

func.func @f(%x: tensor<4x6xf32>, %y: tensor<4x7xf32>, %i: tensor<4x6xi32>, %m: tensor<4x6xi1>) {
  // expected-error@below {{expected a key of tensor<2xui32>}}
  %0 = lazy.rng_bits %x : tensor<4x6xf32> -> tensor<4xui32>
  return
}

// -----

func.func @f(%x: tensor<4x6xf32>, %y: tensor<4x7xf32>, %i: tensor<4x6xi32>, %m: tensor<4x6xi1>) {
  // expected-error@below {{expected a result of shape 4x6, found 6x4}}
  %0 = lazy.materialize %x : tensor<4x6xf32> -> tensor<6x4xf32>
  return
}
