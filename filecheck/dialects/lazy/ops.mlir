// RUN: plait-opt %s | filecheck %s
// RUN: plait-opt %s --mlir-print-op-generic | plait-opt | filecheck %s

// Every operation, through the custom and the generic form.

// CHECK-LABEL: func.func @elementwise(
// CHECK-NEXT:    %abs = lazy.abs %x : tensor<4x6xf32>
// CHECK-NEXT:    %neg = lazy.neg %x : tensor<4x6xf32>
// CHECK-NEXT:    %sign = lazy.sign %x : tensor<4x6xf32>
// CHECK-NEXT:    %exp = lazy.exp %x : tensor<4x6xf32>
// CHECK-NEXT:    %exp2 = lazy.exp2 %x : tensor<4x6xf32>
// CHECK-NEXT:    %log = lazy.log %x : tensor<4x6xf32>
// CHECK-NEXT:    %log2 = lazy.log2 %x : tensor<4x6xf32>
// CHECK-NEXT:    %sqrt = lazy.sqrt %x : tensor<4x6xf32>
// CHECK-NEXT:    %rsqrt = lazy.rsqrt %x : tensor<4x6xf32>
// CHECK-NEXT:    %reciprocal = lazy.reciprocal %x : tensor<4x6xf32>
// CHECK-NEXT:    %sin = lazy.sin %x : tensor<4x6xf32>
// CHECK-NEXT:    %cos = lazy.cos %x : tensor<4x6xf32>
// CHECK-NEXT:    %tan = lazy.tan %x : tensor<4x6xf32>
// CHECK-NEXT:    %tanh = lazy.tanh %x : tensor<4x6xf32>
// CHECK-NEXT:    %erf = lazy.erf %x : tensor<4x6xf32>
// CHECK-NEXT:    %sigmoid = lazy.sigmoid %x : tensor<4x6xf32>
// CHECK-NEXT:    %floor = lazy.floor %x : tensor<4x6xf32>
// CHECK-NEXT:    %ceil = lazy.ceil %x : tensor<4x6xf32>
// CHECK-NEXT:    %round = lazy.round %x : tensor<4x6xf32>
// CHECK-NEXT:    %trunc = lazy.trunc %x : tensor<4x6xf32>
// CHECK-NEXT:    %fadd = lazy.add %x, %x : tensor<4x6xf32>
// CHECK-NEXT:    %fsub = lazy.sub %x, %x : tensor<4x6xf32>
// CHECK-NEXT:    %fmul = lazy.mul %x, %x : tensor<4x6xf32>
// CHECK-NEXT:    %fdiv = lazy.div %x, %x : tensor<4x6xf32>
// CHECK-NEXT:    %frem = lazy.rem %x, %x : tensor<4x6xf32>
// CHECK-NEXT:    %fpow = lazy.pow %x, %x : tensor<4x6xf32>
// CHECK-NEXT:    %fatan2 = lazy.atan2 %x, %x : tensor<4x6xf32>
// CHECK-NEXT:    %fmax = lazy.max %x, %x : tensor<4x6xf32>
// CHECK-NEXT:    %fmin = lazy.min %x, %x : tensor<4x6xf32>
// CHECK-NEXT:    %iand = lazy.and %i, %i : tensor<4x6xi32>
// CHECK-NEXT:    %ior = lazy.or %i, %i : tensor<4x6xi32>
// CHECK-NEXT:    %ixor = lazy.xor %i, %i : tensor<4x6xi32>
// CHECK-NEXT:    %ishl = lazy.shl %i, %i : tensor<4x6xi32>
// CHECK-NEXT:    %ishr = lazy.shr %i, %i : tensor<4x6xi32>
// CHECK-NEXT:    %iadd = lazy.add %i, %i : tensor<4x6xi32>
// CHECK-NEXT:    %isub = lazy.sub %i, %i : tensor<4x6xi32>
// CHECK-NEXT:    %imul = lazy.mul %i, %i : tensor<4x6xi32>
// CHECK-NEXT:    %idiv = lazy.div %i, %i : tensor<4x6xi32>
// CHECK-NEXT:    %irem = lazy.rem %i, %i : tensor<4x6xi32>
// CHECK-NEXT:    %ipow = lazy.pow %i, %i : tensor<4x6xi32>
// CHECK-NEXT:    %imax = lazy.max %i, %i : tensor<4x6xi32>
// CHECK-NEXT:    %imin = lazy.min %i, %i : tensor<4x6xi32>
// CHECK-NEXT:    %noti1 = lazy.not %i1 : tensor<4x6xi1>
// CHECK-NEXT:    %notui8 = lazy.not %ui8 : tensor<4x6xui8>
// CHECK-NEXT:    %noti64 = lazy.not %i64 : tensor<4x6xi64>
// CHECK-NEXT:    %isnan = lazy.isnan %x : tensor<4x6xf32> -> tensor<4x6xi1>
// CHECK-NEXT:    %isfinite = lazy.isfinite %x : tensor<4x6xf32> -> tensor<4x6xi1>
// CHECK-NEXT:    %ceq = lazy.compare eq %x, %x : tensor<4x6xf32> -> tensor<4x6xi1>
// CHECK-NEXT:    %cne = lazy.compare ne %x, %x : tensor<4x6xf32> -> tensor<4x6xi1>
// CHECK-NEXT:    %clt = lazy.compare lt %x, %x : tensor<4x6xf32> -> tensor<4x6xi1>
// CHECK-NEXT:    %cle = lazy.compare le %x, %x : tensor<4x6xf32> -> tensor<4x6xi1>
// CHECK-NEXT:    %cgt = lazy.compare gt %x, %x : tensor<4x6xf32> -> tensor<4x6xi1>
// CHECK-NEXT:    %cge = lazy.compare ge %x, %x : tensor<4x6xf32> -> tensor<4x6xi1>
// CHECK-NEXT:    %select = lazy.select %i1, %x, %x : tensor<4x6xi1>, tensor<4x6xf32>
// CHECK-NEXT:    %tof16 = lazy.cast %x : tensor<4x6xf32> -> tensor<4x6xf16>
// CHECK-NEXT:    %tobf16 = lazy.cast %x : tensor<4x6xf32> -> tensor<4x6xbf16>
// CHECK-NEXT:    %tof64 = lazy.cast %x : tensor<4x6xf32> -> tensor<4x6xf64>
// CHECK-NEXT:    %toi1 = lazy.cast %x : tensor<4x6xf32> -> tensor<4x6xi1>
// CHECK-NEXT:    %toi8 = lazy.cast %x : tensor<4x6xf32> -> tensor<4x6xi8>
// CHECK-NEXT:    %toi16 = lazy.cast %x : tensor<4x6xf32> -> tensor<4x6xi16>
// CHECK-NEXT:    %toi32 = lazy.cast %x : tensor<4x6xf32> -> tensor<4x6xi32>
// CHECK-NEXT:    %toi64 = lazy.cast %x : tensor<4x6xf32> -> tensor<4x6xi64>
// CHECK-NEXT:    %toui8 = lazy.cast %x : tensor<4x6xf32> -> tensor<4x6xui8>
// CHECK-NEXT:    %toui16 = lazy.cast %x : tensor<4x6xf32> -> tensor<4x6xui16>
// CHECK-NEXT:    %toui32 = lazy.cast %x : tensor<4x6xf32> -> tensor<4x6xui32>
// CHECK-NEXT:    %toui64 = lazy.cast %x : tensor<4x6xf32> -> tensor<4x6xui64>
// CHECK-NEXT:    %bits = lazy.bitcast %x : tensor<4x6xf32> -> tensor<4x6xi32>
func.func @elementwise(%x: tensor<4x6xf32>, %i: tensor<4x6xi32>, %i1: tensor<4x6xi1>, %ui8: tensor<4x6xui8>, %i64: tensor<4x6xi64>) {
  %abs = lazy.abs %x : tensor<4x6xf32>
  %neg = lazy.neg %x : tensor<4x6xf32>
  %sign = lazy.sign %x : tensor<4x6xf32>
  %exp = lazy.exp %x : tensor<4x6xf32>
  %exp2 = lazy.exp2 %x : tensor<4x6xf32>
  %log = lazy.log %x : tensor<4x6xf32>
  %log2 = lazy.log2 %x : tensor<4x6xf32>
  %sqrt = lazy.sqrt %x : tensor<4x6xf32>
  %rsqrt = lazy.rsqrt %x : tensor<4x6xf32>
  %reciprocal = lazy.reciprocal %x : tensor<4x6xf32>
  %sin = lazy.sin %x : tensor<4x6xf32>
  %cos = lazy.cos %x : tensor<4x6xf32>
  %tan = lazy.tan %x : tensor<4x6xf32>
  %tanh = lazy.tanh %x : tensor<4x6xf32>
  %erf = lazy.erf %x : tensor<4x6xf32>
  %sigmoid = lazy.sigmoid %x : tensor<4x6xf32>
  %floor = lazy.floor %x : tensor<4x6xf32>
  %ceil = lazy.ceil %x : tensor<4x6xf32>
  %round = lazy.round %x : tensor<4x6xf32>
  %trunc = lazy.trunc %x : tensor<4x6xf32>
  %fadd = lazy.add %x, %x : tensor<4x6xf32>
  %fsub = lazy.sub %x, %x : tensor<4x6xf32>
  %fmul = lazy.mul %x, %x : tensor<4x6xf32>
  %fdiv = lazy.div %x, %x : tensor<4x6xf32>
  %frem = lazy.rem %x, %x : tensor<4x6xf32>
  %fpow = lazy.pow %x, %x : tensor<4x6xf32>
  %fatan2 = lazy.atan2 %x, %x : tensor<4x6xf32>
  %fmax = lazy.max %x, %x : tensor<4x6xf32>
  %fmin = lazy.min %x, %x : tensor<4x6xf32>
  %iand = lazy.and %i, %i : tensor<4x6xi32>
  %ior = lazy.or %i, %i : tensor<4x6xi32>
  %ixor = lazy.xor %i, %i : tensor<4x6xi32>
  %ishl = lazy.shl %i, %i : tensor<4x6xi32>
  %ishr = lazy.shr %i, %i : tensor<4x6xi32>
  %iadd = lazy.add %i, %i : tensor<4x6xi32>
  %isub = lazy.sub %i, %i : tensor<4x6xi32>
  %imul = lazy.mul %i, %i : tensor<4x6xi32>
  %idiv = lazy.div %i, %i : tensor<4x6xi32>
  %irem = lazy.rem %i, %i : tensor<4x6xi32>
  %ipow = lazy.pow %i, %i : tensor<4x6xi32>
  %imax = lazy.max %i, %i : tensor<4x6xi32>
  %imin = lazy.min %i, %i : tensor<4x6xi32>
  %noti1 = lazy.not %i1 : tensor<4x6xi1>
  %notui8 = lazy.not %ui8 : tensor<4x6xui8>
  %noti64 = lazy.not %i64 : tensor<4x6xi64>
  %isnan = lazy.isnan %x : tensor<4x6xf32> -> tensor<4x6xi1>
  %isfinite = lazy.isfinite %x : tensor<4x6xf32> -> tensor<4x6xi1>
  %ceq = lazy.compare eq %x, %x : tensor<4x6xf32> -> tensor<4x6xi1>
  %cne = lazy.compare ne %x, %x : tensor<4x6xf32> -> tensor<4x6xi1>
  %clt = lazy.compare lt %x, %x : tensor<4x6xf32> -> tensor<4x6xi1>
  %cle = lazy.compare le %x, %x : tensor<4x6xf32> -> tensor<4x6xi1>
  %cgt = lazy.compare gt %x, %x : tensor<4x6xf32> -> tensor<4x6xi1>
  %cge = lazy.compare ge %x, %x : tensor<4x6xf32> -> tensor<4x6xi1>
  %select = lazy.select %i1, %x, %x : tensor<4x6xi1>, tensor<4x6xf32>
  %tof16 = lazy.cast %x : tensor<4x6xf32> -> tensor<4x6xf16>
  %tobf16 = lazy.cast %x : tensor<4x6xf32> -> tensor<4x6xbf16>
  %tof64 = lazy.cast %x : tensor<4x6xf32> -> tensor<4x6xf64>
  %toi1 = lazy.cast %x : tensor<4x6xf32> -> tensor<4x6xi1>
  %toi8 = lazy.cast %x : tensor<4x6xf32> -> tensor<4x6xi8>
  %toi16 = lazy.cast %x : tensor<4x6xf32> -> tensor<4x6xi16>
  %toi32 = lazy.cast %x : tensor<4x6xf32> -> tensor<4x6xi32>
  %toi64 = lazy.cast %x : tensor<4x6xf32> -> tensor<4x6xi64>
  %toui8 = lazy.cast %x : tensor<4x6xf32> -> tensor<4x6xui8>
  %toui16 = lazy.cast %x : tensor<4x6xf32> -> tensor<4x6xui16>
  %toui32 = lazy.cast %x : tensor<4x6xf32> -> tensor<4x6xui32>
  %toui64 = lazy.cast %x : tensor<4x6xf32> -> tensor<4x6xui64>
  %bits = lazy.bitcast %x : tensor<4x6xf32> -> tensor<4x6xi32>
  return
}

// CHECK-LABEL: func.func @movement(
// CHECK-NEXT:    %reshape = lazy.reshape %x : tensor<4x6xf32> -> tensor<24xf32>
// CHECK-NEXT:    %permute = lazy.permute %x permutation = [1, 0] : tensor<4x6xf32> -> tensor<6x4xf32>
// CHECK-NEXT:    %expand = lazy.expand %one : tensor<1x6xf32> -> tensor<4x6xf32>
// CHECK-NEXT:    %pad = lazy.pad %x low = [1, 0] high = [0, 2] interior = [0, 1] value = 0.000000e+00 : f32 : tensor<4x6xf32> -> tensor<5x13xf32>
// CHECK-NEXT:    %slice = lazy.slice %x starts = [1, 0] stops = [4, 6] steps = [2, 3] : tensor<4x6xf32> -> tensor<2x2xf32>
// CHECK-NEXT:    %flip = lazy.flip %x axes = [0, 1] : tensor<4x6xf32> -> tensor<4x6xf32>
// CHECK-NEXT:    %window = lazy.window %x axes = [1] sizes = [3] strides = [1] dilations = [2] : tensor<4x6xf32> -> tensor<4x2x3xf32>
// CHECK-NEXT:    %concat = lazy.concat %x, %one axis = 0 : tensor<4x6xf32>, tensor<1x6xf32> -> tensor<5x6xf32>
func.func @movement(%x: tensor<4x6xf32>, %one: tensor<1x6xf32>) {
  %reshape = lazy.reshape %x : tensor<4x6xf32> -> tensor<24xf32>
  %permute = lazy.permute %x permutation = [1, 0] : tensor<4x6xf32> -> tensor<6x4xf32>
  %expand = lazy.expand %one : tensor<1x6xf32> -> tensor<4x6xf32>
  %pad = lazy.pad %x low = [1, 0] high = [0, 2] interior = [0, 1] value = 0.000000e+00 : f32 : tensor<4x6xf32> -> tensor<5x13xf32>
  %slice = lazy.slice %x starts = [1, 0] stops = [4, 6] steps = [2, 3] : tensor<4x6xf32> -> tensor<2x2xf32>
  %flip = lazy.flip %x axes = [0, 1] : tensor<4x6xf32> -> tensor<4x6xf32>
  %window = lazy.window %x axes = [1] sizes = [3] strides = [1] dilations = [2] : tensor<4x6xf32> -> tensor<4x2x3xf32>
  %concat = lazy.concat %x, %one axis = 0 : tensor<4x6xf32>, tensor<1x6xf32> -> tensor<5x6xf32>
  return
}

// CHECK-LABEL: func.func @combining(
// CHECK-NEXT:    %sum = lazy.reduce sum %x axes = [1] : tensor<4x6xf32> -> tensor<4xf32>
// CHECK-NEXT:    %prod = lazy.reduce prod %x axes = [1] : tensor<4x6xf32> -> tensor<4xf32>
// CHECK-NEXT:    %max = lazy.reduce max %x axes = [1] : tensor<4x6xf32> -> tensor<4xf32>
// CHECK-NEXT:    %min = lazy.reduce min %x axes = [1] : tensor<4x6xf32> -> tensor<4xf32>
// CHECK-NEXT:    %any = lazy.reduce any %m axes = [0, 1] : tensor<4x6xi1> -> tensor<i1>
// CHECK-NEXT:    %all = lazy.reduce all %m axes = [0, 1] : tensor<4x6xi1> -> tensor<i1>
// CHECK-NEXT:    %argmax = lazy.argmax %x axis = 1 : tensor<4x6xf32> -> tensor<4xi64>
// CHECK-NEXT:    %argmin = lazy.argmin %x axis = 0 : tensor<4x6xf32> -> tensor<6xi32>
// CHECK-NEXT:    %scansum = lazy.scan sum %x axis = 1 : tensor<4x6xf32> -> tensor<4x6xf32>
// CHECK-NEXT:    %scanprod = lazy.scan prod %x axis = 1 : tensor<4x6xf32> -> tensor<4x6xf32>
// CHECK-NEXT:    %scanmax = lazy.scan max %x axis = 1 : tensor<4x6xf32> -> tensor<4x6xf32>
// CHECK-NEXT:    %scanmin = lazy.scan min %x axis = 1 : tensor<4x6xf32> -> tensor<4x6xf32>
// CHECK-NEXT:    %gather = lazy.gather %x, %at axis = 0 : tensor<4x6xf32>, tensor<3x6xi64> -> tensor<3x6xf32>
// CHECK-NEXT:    %scatterset = lazy.scatter set %x, %at, %u axis = 0 : tensor<4x6xf32>, tensor<3x6xi64>, tensor<3x6xf32> -> tensor<4x6xf32>
// CHECK-NEXT:    %scatteradd = lazy.scatter add %x, %at, %u axis = 0 : tensor<4x6xf32>, tensor<3x6xi64>, tensor<3x6xf32> -> tensor<4x6xf32>
// CHECK-NEXT:    %scattermul = lazy.scatter mul %x, %at, %u axis = 0 : tensor<4x6xf32>, tensor<3x6xi64>, tensor<3x6xf32> -> tensor<4x6xf32>
// CHECK-NEXT:    %scattermax = lazy.scatter max %x, %at, %u axis = 0 : tensor<4x6xf32>, tensor<3x6xi64>, tensor<3x6xf32> -> tensor<4x6xf32>
// CHECK-NEXT:    %scattermin = lazy.scatter min %x, %at, %u axis = 0 : tensor<4x6xf32>, tensor<3x6xi64>, tensor<3x6xf32> -> tensor<4x6xf32>
func.func @combining(%x: tensor<4x6xf32>, %m: tensor<4x6xi1>, %at: tensor<3x6xi64>, %u: tensor<3x6xf32>) {
  %sum = lazy.reduce sum %x axes = [1] : tensor<4x6xf32> -> tensor<4xf32>
  %prod = lazy.reduce prod %x axes = [1] : tensor<4x6xf32> -> tensor<4xf32>
  %max = lazy.reduce max %x axes = [1] : tensor<4x6xf32> -> tensor<4xf32>
  %min = lazy.reduce min %x axes = [1] : tensor<4x6xf32> -> tensor<4xf32>
  %any = lazy.reduce any %m axes = [0, 1] : tensor<4x6xi1> -> tensor<i1>
  %all = lazy.reduce all %m axes = [0, 1] : tensor<4x6xi1> -> tensor<i1>
  %argmax = lazy.argmax %x axis = 1 : tensor<4x6xf32> -> tensor<4xi64>
  %argmin = lazy.argmin %x axis = 0 : tensor<4x6xf32> -> tensor<6xi32>
  %scansum = lazy.scan sum %x axis = 1 : tensor<4x6xf32> -> tensor<4x6xf32>
  %scanprod = lazy.scan prod %x axis = 1 : tensor<4x6xf32> -> tensor<4x6xf32>
  %scanmax = lazy.scan max %x axis = 1 : tensor<4x6xf32> -> tensor<4x6xf32>
  %scanmin = lazy.scan min %x axis = 1 : tensor<4x6xf32> -> tensor<4x6xf32>
  %gather = lazy.gather %x, %at axis = 0 : tensor<4x6xf32>, tensor<3x6xi64> -> tensor<3x6xf32>
  %scatterset = lazy.scatter set %x, %at, %u axis = 0 : tensor<4x6xf32>, tensor<3x6xi64>, tensor<3x6xf32> -> tensor<4x6xf32>
  %scatteradd = lazy.scatter add %x, %at, %u axis = 0 : tensor<4x6xf32>, tensor<3x6xi64>, tensor<3x6xf32> -> tensor<4x6xf32>
  %scattermul = lazy.scatter mul %x, %at, %u axis = 0 : tensor<4x6xf32>, tensor<3x6xi64>, tensor<3x6xf32> -> tensor<4x6xf32>
  %scattermax = lazy.scatter max %x, %at, %u axis = 0 : tensor<4x6xf32>, tensor<3x6xi64>, tensor<3x6xf32> -> tensor<4x6xf32>
  %scattermin = lazy.scatter min %x, %at, %u axis = 0 : tensor<4x6xf32>, tensor<3x6xi64>, tensor<3x6xf32> -> tensor<4x6xf32>
  return
}

// CHECK-LABEL: func.func @sources(
// CHECK-NEXT:    %dense = lazy.constant dense<[1, 2, 3]> : tensor<3xi32>
// CHECK-NEXT:    %splat = lazy.constant dense<1.000000e+00> : tensor<4x6xf16>
// CHECK-NEXT:    %iota = lazy.iota axis = 1 : tensor<4x6xi64>
// CHECK-NEXT:    %bits = lazy.rng_bits %key : tensor<2xui32> -> tensor<4x6xui32>
// CHECK-NEXT:    %kept = lazy.materialize %x : tensor<4x6xf32> -> tensor<4x6xf32>
func.func @sources(%x: tensor<4x6xf32>, %key: tensor<2xui32>) {
  %dense = lazy.constant dense<[1, 2, 3]> : tensor<3xi32>
  %splat = lazy.constant dense<1.000000e+00> : tensor<4x6xf16>
  %iota = lazy.iota axis = 1 : tensor<4x6xi64>
  %bits = lazy.rng_bits %key : tensor<2xui32> -> tensor<4x6xui32>
  %kept = lazy.materialize %x : tensor<4x6xf32> -> tensor<4x6xf32>
  return
}

// CHECK-LABEL: func.func @empty(
// CHECK-NEXT:    %sum = lazy.reduce sum %x axes = [0] : tensor<0x6xf32> -> tensor<6xf32>
// CHECK-NEXT:    %scalar = lazy.reshape %s : tensor<f32> -> tensor<1xf32>
// CHECK-NEXT:    %none = lazy.slice %x starts = [0, 2] stops = [0, 2] steps = [1, 1] : tensor<0x6xf32> -> tensor<0x0xf32>
func.func @empty(%x: tensor<0x6xf32>, %s: tensor<f32>) {
  %sum = lazy.reduce sum %x axes = [0] : tensor<0x6xf32> -> tensor<6xf32>
  %scalar = lazy.reshape %s : tensor<f32> -> tensor<1xf32>
  %none = lazy.slice %x starts = [0, 2] stops = [0, 2] steps = [1, 1] : tensor<0x6xf32> -> tensor<0x0xf32>
  return
}
