// RUN: plait-opt %s -p fuse-form-groups,fuse-plan-memory --split-input-file | filecheck %s
// RUN: plait-opt %s -p fuse-form-groups,fuse-plan-memory,fuse-plan-memory --split-input-file | filecheck %s
// RUN: plait-opt %s -p fuse-form-groups,fuse-plan-memory --split-input-file --remarks 2>&1 | filecheck %s --check-prefix REMARK
// RUN: plait-opt %s -p fuse-form-groups,fuse-plan-memory,convert-fuse-to-nest --split-input-file | filecheck %s --check-prefix NEST

// An assigned slice is written into the buffer; the rest is neither read nor written.

// CHECK-LABEL: func.func @assign_slice(
// CHECK:         fuse.group "copy_0" {{.*}} attributes {fuse.updates = array<i64: 0>}
// REMARK: passed: [fuse.updated-in-place] 'copy_0' writes over its input, kernel: copy_0, input: 0
// NEST: nest.kernel @copy_0(%{{.*}}: memref<2xf32>, %{{.*}}: memref<8xf32>)
// NEST-NEXT: nest.load %{{.*}}(%i0) where {{.*}} : memref<2xf32>
// NEST-NEXT: nest.store %{{.*}} where {{.*}} : memref<8xf32>
// NEST-NEXT: }
// NEST: nest.launch @copy_0(%y, %x) : memref<2xf32>, memref<8xf32>
// NEST-NEXT: func.return %x : memref<8xf32>
func.func @assign_slice(%x: tensor<8xf32> {lazy.donated}, %y: tensor<2xf32>)
    -> (tensor<8xf32> {lazy.aliases = 0 : i64}) {
  %0 = lazy.slice %x starts = [2] stops = [8] steps = [1] : tensor<8xf32> -> tensor<6xf32>
  %1 = lazy.concat %y, %0 axis = 0 : tensor<2xf32>, tensor<6xf32> -> tensor<8xf32>
  func.return %1 : tensor<8xf32>
}

// -----

// Every element is read where it is written.

// CHECK-LABEL: func.func @step(
// CHECK:         attributes {fuse.updates = array<i64: 0>}
func.func @step(%p: tensor<8xf32> {lazy.donated}, %g: tensor<8xf32>)
    -> (tensor<8xf32> {lazy.aliases = 0 : i64}) {
  %0 = lazy.sub %p, %g : tensor<8xf32>
  func.return %0 : tensor<8xf32>
}

// -----

// Reversed, an element would be gone before it is read.

// CHECK-LABEL: func.func @reversed(
// CHECK-NOT:     fuse.updates
// REMARK: missed: [fuse.overwrites-reads] 'copy_0' writes a copy
func.func @reversed(%x: tensor<8xf32> {lazy.donated})
    -> (tensor<8xf32> {lazy.aliases = 0 : i64}) {
  %0 = lazy.flip %x axes = [0] : tensor<8xf32> -> tensor<8xf32>
  func.return %0 : tensor<8xf32>
}

// -----

// The old contents are the caller's, too.

// CHECK-LABEL: func.func @returned(
// CHECK-NOT:     fuse.updates
// REMARK: missed: [fuse.read-later] 'map_0' writes a copy{{.*}} reader: the caller
func.func @returned(%x: tensor<8xf32> {lazy.donated})
    -> (tensor<8xf32>, tensor<8xf32> {lazy.aliases = 0 : i64}) {
  %0 = lazy.exp %x : tensor<8xf32>
  func.return %x, %0 : tensor<8xf32>, tensor<8xf32>
}
