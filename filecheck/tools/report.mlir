// RUN: plait report %s | filecheck %s
// RUN: plait report %s --kernels | filecheck %s --check-prefix=KERNELS
// RUN: plait report %s --json --pipeline none | filecheck %s --check-prefix=JSON
// RUN: plait explain %s | filecheck %s --check-prefix=EXPLAIN
// RUN: plait run %s --check | filecheck %s --check-prefix=RUNS
// RUN: plait run %s --check --backend numpy --pipeline seed | filecheck %s --check-prefix=RUNS

// CHECK:      plan     kernels
// CHECK-NEXT: ----
// CHECK-NEXT: none           2
// CHECK-NEXT: default        1
// CHECK-NEXT: lower bound: 160 B

// KERNELS:      kernel
// KERNELS:      reduce  4x8

// JSON:      "kernels": 2,
// JSON-NEXT: "bytes_read": 256,
// JSON-NEXT: "bytes_written": 32,
// JSON-NEXT: "bytes": 288,
// JSON-NEXT: "lower_bound_bytes": 160,

// EXPLAIN: remark: passed:

// RUNS: cuda: {{[0-9]}} kernels
// RUNS: check passed: 2 outputs
func.func @main(%x: tensor<4x8xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %s = lazy.reduce sum %x axes = [1] : tensor<4x8xf32> -> tensor<4xf32>
  %m = lazy.reduce max %x axes = [1] : tensor<4x8xf32> -> tensor<4xf32>
  return %s, %m : tensor<4xf32>, tensor<4xf32>
}
