// RUN: not plait-opt %s -p fuse-form-grops 2>&1 | filecheck %s --check-prefix=PASS
// RUN: not plait-opt %s --pipeline sed 2>&1 | filecheck %s --check-prefix=PIPELINE
// RUN: not plait-opt %s -p nest-schedule{tarket=cpu} 2>&1 | filecheck %s --check-prefix=OPTION
// RUN: not plait-opt %s --load nothing.py 2>&1 | filecheck %s --check-prefix=LOAD
// RUN: not plait-opt nothing.mlir 2>&1 | filecheck %s --check-prefix=FILE
// RUN: not plait report %s --pipeline sed 2>&1 | filecheck %s --check-prefix=REPORT
// RUN: not plait report nothing.txt 2>&1 | filecheck %s --check-prefix=PROGRAM
// RUN: not plait report %s --target cuda:sm_8 2>&1 | filecheck %s --check-prefix=TARGET

// PASS:     error: unknown pass 'fuse-form-grops'; did you mean 'fuse-form-groups'?
// PASS-NOT: Traceback
// PIPELINE:     error: unknown pipeline 'sed': expected one of none, seed, default, fewest-bytes, optimal; did you mean 'seed'?
// PIPELINE-NOT: Traceback
// OPTION:     error: pass 'nest-schedule':{{.*}}tarket
// OPTION-NOT: Traceback
// LOAD: error: nothing.py: no such file
// FILE: error: nothing.mlir: cannot read: no such file or directory
// REPORT: error: unknown pipeline 'sed': expected one of none, seed, default
// PROGRAM: error: nothing.txt: expected a file that ends in .mlir or .py
// TARGET:     error: {{.*}}cuda:sm_8
// TARGET-NOT: Traceback
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}
