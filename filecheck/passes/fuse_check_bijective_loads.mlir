// RUN: plait-opt %s -p fuse-check-bijective-loads | filecheck %s
// RUN: plait-opt %s -p fuse-check-bijective-loads,fuse-check-bijective-loads | filecheck %s

// A whole load, a permuted one, one that is read again along the rows, and one after the reduce.

// CHECK-LABEL: func.func @phases(
// CHECK:         attributes {fuse.loads = {{\[\[}}"early bijective"], ["early bijective"], ["early broadcast"], ["late bijective"]]} {
func.func @phases(%x: tensor<8x8xf32>, %y: tensor<8x8xf32>, %z: tensor<1x8xf32>, %w: tensor<8xf32>) -> tensor<8xf32> {
  %0 = fuse.group "sum" (%a = %x : tensor<8x8xf32>, %b = %y : tensor<8x8xf32>, %c = %z : tensor<1x8xf32>, %d = %w : tensor<8xf32>) -> tensor<8xf32> {
    %t = lazy.permute %b permutation = [1, 0] : tensor<8x8xf32> -> tensor<8x8xf32>
    %e = lazy.expand %c : tensor<1x8xf32> -> tensor<8x8xf32>
    %u = lazy.add %a, %t : tensor<8x8xf32>
    %v = lazy.add %u, %e : tensor<8x8xf32>
    %s = lazy.reduce sum %v axes = [1] : tensor<8x8xf32> -> tensor<8xf32>
    %r = lazy.mul %s, %d : tensor<8xf32>
    fuse.yield %r : tensor<8xf32>
  }
  func.return %0 : tensor<8xf32>
}

// A padded load covers part of the space; a gather goes where data says.

// CHECK-LABEL: func.func @partial(
// CHECK:         attributes {fuse.loads = {{\[\[}}"early injective"], ["early irregular"], ["early bijective"]]} {
func.func @partial(%x: tensor<4xf32>, %y: tensor<9xf32>, %i: tensor<6xi32>) -> tensor<6xf32> {
  %0 = fuse.group "map" (%a = %x : tensor<4xf32>, %b = %y : tensor<9xf32>, %c = %i : tensor<6xi32>) -> tensor<6xf32> {
    %p = lazy.pad %a low = [1] high = [1] interior = [0] value = 0.0 : f32 : tensor<4xf32> -> tensor<6xf32>
    %g = lazy.gather %b, %c axis = 0 : tensor<9xf32>, tensor<6xi32> -> tensor<6xf32>
    %r = lazy.add %p, %g : tensor<6xf32>
    fuse.yield %r : tensor<6xf32>
  }
  func.return %0 : tensor<6xf32>
}
