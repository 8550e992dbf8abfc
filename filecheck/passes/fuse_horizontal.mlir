// RUN: plait-opt %s -p fuse-form-groups,fuse-horizontal{target=cuda:sm_80} --split-input-file | filecheck %s
// RUN: plait-opt %s -p fuse-form-groups,fuse-horizontal{target=cuda:sm_80} --split-input-file --remarks 2>&1 | filecheck %s --check-prefix REMARK
// RUN: plait-opt %s -p fuse-form-groups,fuse-horizontal{target=cuda:sm_80},convert-fuse-to-nest --split-input-file | filecheck %s --check-prefix NEST

// Three small kernels share a launch; points past the end of a smaller result skip it.

// CHECK-LABEL: func.func @small(
// CHECK-NEXT:    %0, %1, %2 = fuse.group "map_0+2"
// REMARK: passed: [fuse.side-by-side] 'map_0' and 'map_1' share a launch
// REMARK: passed: [fuse.side-by-side] 'map_0' and 'map_2' share a launch
// NEST: nest.kernel @map_0_2{{.*}} axes [%i0 = 20]
// NEST: nest.store {{.*}} where
func.func @small(%x: tensor<7xf32>, %y: tensor<20xf32>, %z: tensor<20xf32>)
    -> (tensor<7xf32>, tensor<20xf32>, tensor<20xf32>) {
  %0 = lazy.exp %x : tensor<7xf32>
  %1 = lazy.tanh %y : tensor<20xf32>
  %2 = lazy.sqrt %z : tensor<20xf32>
  func.return %0, %1, %2 : tensor<7xf32>, tensor<20xf32>, tensor<20xf32>
}

// -----

// Kernels that take much longer than a launch stay apart: nothing is gained.

// CHECK-LABEL: func.func @large(
// CHECK:         fuse.group "map_0"
// CHECK:         fuse.group "map_1"
func.func @large(%x: tensor<16777216xf32>, %y: tensor<16777216xf32>)
    -> (tensor<16777216xf32>, tensor<16777216xf32>) {
  %0 = lazy.exp %x : tensor<16777216xf32>
  %1 = lazy.exp %y : tensor<16777216xf32>
  func.return %0, %1 : tensor<16777216xf32>, tensor<16777216xf32>
}
