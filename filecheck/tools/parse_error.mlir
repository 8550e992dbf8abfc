// RUN: not plait-opt %s 2>&1 | filecheck %s
// RUN: not plait report %s 2>&1 | filecheck %s

// CHECK:      parse_error.mlir:10:17: error: Operation lazy.exq is not registered
// CHECK-NEXT:   %0 = lazy.exq %x : tensor<4xf32>
// CHECK-NEXT:                 ^
// CHECK-NOT:  Traceback

func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = lazy.exq %x : tensor<4xf32>
  return %0 : tensor<4xf32>
}
