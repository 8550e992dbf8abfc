// RUN: plait-opt %s | plait-opt | filecheck %s
// RUN: plait-opt %s --print-op-generic | plait-opt | filecheck %s
// RUN: plait-opt %s --print-op-generic | filecheck %s --check-prefix=GENERIC

// CHECK-LABEL: func.func @two(
// CHECK-NEXT:    %{{.*}}, %{{.*}} = fuse.group "both" (%{{.*}} = %x : tensor<4x8xf32>, %{{.*}} = %y : tensor<4xf32>) -> tensor<4xf32>, tensor<4x8xf32> {
// CHECK-NEXT:      %{{.*}} = lazy.reduce sum %{{.*}} axes = [1] : tensor<4x8xf32> -> tensor<4xf32>
// CHECK-NEXT:      %{{.*}} = lazy.add %{{.*}}, %{{.*}} : tensor<4xf32>
// CHECK-NEXT:      %{{.*}} = lazy.exp %{{.*}} : tensor<4x8xf32>
// CHECK-NEXT:      fuse.yield %{{.*}}, %{{.*}} : tensor<4xf32>, tensor<4x8xf32>
// CHECK-NEXT:    }
// GENERIC:       %{{.*}}, %{{.*}} = "fuse.group"(%x, %y) <{label = "both"}> ({
// GENERIC-NEXT:  ^bb{{.*}}(%{{.*}}: tensor<4x8xf32>, %{{.*}}: tensor<4xf32>):
// GENERIC:         "fuse.yield"(%{{.*}}, %{{.*}}) : (tensor<4xf32>, tensor<4x8xf32>) -> ()
// GENERIC-NEXT:  }) : (tensor<4x8xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4x8xf32>)
func.func @two(%x: tensor<4x8xf32>, %y: tensor<4xf32>) -> (tensor<4xf32>, tensor<4x8xf32>) {
  %0, %1 = fuse.group "both" (%a = %x : tensor<4x8xf32>, %b = %y : tensor<4xf32>) -> tensor<4xf32>, tensor<4x8xf32> {
    %s = lazy.reduce sum %a axes = [1] : tensor<4x8xf32> -> tensor<4xf32>
    %t = lazy.add %s, %b : tensor<4xf32>
    %e = lazy.exp %a : tensor<4x8xf32>
    fuse.yield %t, %e : tensor<4xf32>, tensor<4x8xf32>
  }
  func.return %0, %1 : tensor<4xf32>, tensor<4x8xf32>
}

// Names inside a group are its own; it may have no label, no inputs, and attributes.

// CHECK-LABEL: func.func @names(
// CHECK-NEXT:    %{{.*}} = fuse.group (%{{.*}} = %x : tensor<4xf32>) -> tensor<4xf32> attributes {fuse.loads = {{\[\[}}"early bijective"]]} {
// CHECK-NEXT:      %{{.*}} = lazy.neg %{{.*}} : tensor<4xf32>
// CHECK:         %{{.*}} = fuse.group () -> tensor<4xi32> {
// CHECK-NEXT:      %{{.*}} = lazy.iota axis = 0 : tensor<4xi32>
func.func @names(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xi32>) {
  %0 = fuse.group (%x = %x : tensor<4xf32>) -> tensor<4xf32> attributes {fuse.loads = [["early bijective"]]} {
    %0 = lazy.neg %x : tensor<4xf32>
    fuse.yield %0 : tensor<4xf32>
  }
  %1 = fuse.group () -> tensor<4xi32> {
    %0 = lazy.iota axis = 0 : tensor<4xi32>
    fuse.yield %0 : tensor<4xi32>
  }
  func.return %0, %1 : tensor<4xf32>, tensor<4xi32>
}

// CHECK-LABEL: func.func @kept(
// CHECK:           %{{.*}} = fuse.keep %{{.*}} : tensor<4x8xf32>
func.func @kept(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %0 = fuse.group "kept" (%a = %x : tensor<4x8xf32>) -> tensor<4x8xf32> {
    %e = lazy.exp %a : tensor<4x8xf32>
    %k = fuse.keep %e : tensor<4x8xf32>
    %r = lazy.reduce sum %k axes = [1] : tensor<4x8xf32> -> tensor<4xf32>
    %s = lazy.reshape %r : tensor<4xf32> -> tensor<4x1xf32>
    %t = lazy.expand %s : tensor<4x1xf32> -> tensor<4x8xf32>
    %d = lazy.div %k, %t : tensor<4x8xf32>
    fuse.yield %d : tensor<4x8xf32>
  }
  func.return %0 : tensor<4x8xf32>
}
