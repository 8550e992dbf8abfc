// RUN: plait-opt %s -t llvm | filecheck %s

// A vector loop over 20 elements: two whole vectors, then four lanes under a mask.

// CHECK-LABEL: define void @double(ptr noalias nonnull readonly align 4 %{{.*}}, ptr noalias nonnull align 4 %{{.*}}, i64 %{{.*}}, i64 %{{.*}})
// CHECK:         load <8 x float>, ptr
// CHECK:         fadd <8 x float>
// CHECK:         store <8 x float>
// CHECK:         icmp slt <8 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7>, <i32 4,
// CHECK:         call <8 x float> @llvm.masked.load.v8f32.p0
// CHECK:         call void @llvm.masked.store.v8f32.p0
// CHECK:         ret void
func.func @double(%x: memref<20xf32>, %y: memref<20xf32>, %begin: index, %end: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c20 = arith.constant 20 : index
  scf.for %i = %c0 to %c20 step %c1 {
    %v = memref.load %x[%i] : memref<20xf32>
    %r = arith.addf %v, %v : f32
    memref.store %r, %y[%i] : memref<20xf32>
  } {plait.lanes = 8 : index}
  func.return
}

// The same function behind one signature for all kernels.

// CHECK-LABEL: define void @double.packed(ptr %args, i64 %begin, i64 %end)
// CHECK:         call void @double(ptr %p0, ptr %p1, i64 %begin, i64 %end)

// A reduction keeps a partial result per lane and combines them once.

// CHECK-LABEL: define void @sum(
// CHECK:         phi <4 x float> [ <float 0x8000000000000000
// CHECK:         fadd <4 x float>
// CHECK:         call reassoc float @llvm.vector.reduce.fadd.v4f32
func.func @sum(%x: memref<16xf32>, %y: memref<f32>, %begin: index, %end: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %zero = arith.constant 0.0 : f32
  %s = scf.for %i = %c0 to %c16 step %c1 iter_args(%a = %zero) -> (f32) {
    %v = memref.load %x[%i] : memref<16xf32>
    %n = arith.addf %a, %v : f32
    scf.yield %n : f32
  } {plait.lanes = 4 : index, plait.width = 4 : index, plait.reduce = ["sum"]}
  memref.store %s, %y[] : memref<f32>
  func.return
}

// The few steps of a window that carry a value follow one another.

// CHECK-LABEL: define void @window(
// CHECK-NOT:     phi
// CHECK:         getelementptr inbounds float, ptr %[[X:.*]], i64 0
// CHECK:         fadd float
// CHECK:         getelementptr inbounds float, ptr %[[X]], i64 1
// CHECK:         fadd float
// CHECK:         getelementptr inbounds float, ptr %[[X]], i64 2
// CHECK:         fadd float
// CHECK-NOT:     phi
// CHECK:         ret void
func.func @window(%x: memref<3xf32>, %y: memref<f32>, %begin: index, %end: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %zero = arith.constant 0.0 : f32
  %s = scf.for %i = %c0 to %c3 step %c1 iter_args(%a = %zero) -> (f32) {
    %v = memref.load %x[%i] : memref<3xf32>
    %n = arith.addf %a, %v : f32
    scf.yield %n : f32
  }
  memref.store %s, %y[] : memref<f32>
  func.return
}

// 16-bit floats are bit patterns; without hardware the conversion is integer arithmetic.

// CHECK-LABEL: define void @widen(
// CHECK:         call float @plait.bf16_to_f32.x1(i16
// CHECK:       define internal float @plait.bf16_to_f32.x1(i16 %x0) alwaysinline
func.func @widen(%x: memref<4xbf16>, %y: memref<4xf32>, %begin: index, %end: index) {
  %c1 = arith.constant 1 : index
  scf.for %i = %begin to %end step %c1 {
    %v = memref.load %x[%i] : memref<4xbf16>
    %w = arith.extf %v : bf16 to f32
    memref.store %w, %y[%i] : memref<4xf32>
  }
  func.return
}
