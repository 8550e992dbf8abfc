"""Times plait's CPU backend beside numpy, torch, Inductor, jax and tinygrad, in one run.

    python benchmarks/peers.py [--workload NAME ...] [--peer NAME ...] [--rounds N] [--json FILE]
    python benchmarks/peers.py --table FILE

Every round runs every framework once, in turn, on the same data, so that a slow moment of the
machine falls on all of them; what is printed are medians over the rounds, and plait's time as a
multiple of the fastest peer's (the median of the ratios within a round). A peer that is not
installed, or cannot run a workload, is named and left out. Every result of plait is first checked
against the first other framework that ran. The same run measures how fast the machine copies.
``--table`` prints a file written before as the table of the README.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from peers_workloads import WORKLOADS, Workload

Run = Callable[[], Any]
Results = list[np.ndarray]
Prepared = tuple[Run, Callable[[Any], Results]]
"""A call that computes everything and waits for it, and how to read what it returns."""


def _listed(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else [value]


def _places(workload: Workload) -> list[int]:
    names = list(workload.shapes)
    return [names.index(name) for name in workload.wrt]


def _cotangent(workload: Workload, arrays: Sequence[Any], shape: Sequence[int]) -> Any:
    """The gradient that arrives at the output, the same for every framework."""
    return np.random.default_rng(1).standard_normal(shape).astype(np.float32)


def _plait(workload: Workload, arrays: list[Any]) -> Prepared:
    import plait

    inputs = [plait.empty(*array.shape, dtype=str(array.dtype)) for array in arrays]
    outputs = _listed(workload.plait(*inputs))
    given = list(arrays)
    if workload.wrt:
        arriving = plait.empty(*outputs[0].shape)
        given.append(_cotangent(workload, arrays, outputs[0].shape))
        places = _places(workload)
        outputs += plait.grad(outputs[0], [inputs[k] for k in places], arriving)
        inputs.append(arriving)
    from plait.frontend.schedule import Plan
    from plait.frontend.trace import build_module

    plan = Plan(*build_module(outputs, inputs))
    return lambda: plan.run(*given), lambda found: [np.array(array) for array in found]


def _numpy(workload: Workload, arrays: list[Any]) -> Prepared:
    function = workload.numpy
    if function is None or workload.wrt:
        raise NotImplementedError("no numpy form of this workload")
    return lambda: function(*arrays), lambda found: [np.asarray(a) for a in _listed(found)]


def _torch_with(wrap: Callable[[Any], Any]) -> Callable[[Workload, list[Any]], Prepared]:
    def prepare(workload: Workload, arrays: list[Any]) -> Prepared:
        import torch

        torch.set_num_threads(len(os.sched_getaffinity(0)))
        tensors = [torch.from_numpy(array.copy()) for array in arrays]
        function = wrap(workload.torch)
        if not workload.wrt:

            def forward() -> Any:
                with torch.no_grad():
                    return function(*tensors)

            return forward, lambda found: [t.numpy() for t in _listed(found)]
        wanted = [tensors[k].requires_grad_() for k in _places(workload)]
        shape = function(*tensors).shape
        arriving = torch.from_numpy(_cotangent(workload, arrays, shape))

        def both() -> Any:
            result = function(*tensors)
            return [result, *torch.autograd.grad(result, wanted, arriving)]

        return both, lambda found: [t.detach().numpy() for t in found]

    return prepare


def _eager(function: Any) -> Any:
    return function


def _inductor(function: Any) -> Any:
    import torch

    torch._dynamo.reset()
    return torch.compile(function)


def _jax(workload: Workload, arrays: list[Any]) -> Prepared:
    import jax

    given = [jax.numpy.asarray(array) for array in arrays]
    function = workload.jax
    if workload.wrt:
        places = _places(workload)
        shape = jax.eval_shape(function, *given).shape
        given.append(jax.numpy.asarray(_cotangent(workload, arrays, shape)))

        def both(*values: Any) -> Any:
            rest = list(values[:-1])

            def part(*wanted: Any) -> Any:
                full = list(rest)
                for place, value in zip(places, wanted, strict=True):
                    full[place] = value
                return workload.jax(*full)

            result, back = jax.vjp(part, *(rest[k] for k in places))
            return [result, *back(values[-1])]

        function = both
    compiled = jax.jit(function)
    run: Run = lambda: jax.block_until_ready(compiled(*given))  # noqa: E731
    return run, lambda found: [np.asarray(a) for a in _listed(found)]


def _tinygrad(workload: Workload, arrays: list[Any]) -> Prepared:
    from tinygrad import Tensor, TinyJit

    given = [Tensor(array).realize() for array in arrays]
    if workload.wrt:
        shape = workload.tinygrad(*given).shape
        given.append(Tensor(_cotangent(workload, arrays, shape)).realize())

    def whole(*values: Any) -> Any:
        if not workload.wrt:
            found = _listed(workload.tinygrad(*values))
        else:
            result = workload.tinygrad(*values[:-1])
            wanted = [values[k] for k in _places(workload)]
            found = [result, *result.gradient(*wanted, gradient=values[-1])]
        return found[0].realize(*found[1:]) if len(found) == 1 else _realized(found)

    def _realized(found: list[Any]) -> list[Any]:
        Tensor.realize(*found)
        return found

    compiled = TinyJit(whole)
    device = given[0].device

    def run() -> Any:
        from tinygrad import Device

        found = compiled(*given)
        Device[device].synchronize()
        return found

    for _ in range(3):
        run()
    return run, lambda found: [t.numpy() for t in _listed(found)]


PEERS: dict[str, Callable[[Workload, list[Any]], Prepared]] = {
    "plait": _plait,
    "numpy": _numpy,
    "torch": _torch_with(_eager),
    "inductor": _torch_with(_inductor),
    "jax": _jax,
    "tinygrad": _tinygrad,
}


def _check(workload: Workload, name: str, found: Results, wanted: Results) -> None:
    """Ends the run when plait's results are not the peer's."""
    for number, (a, b) in enumerate(zip(found, wanted, strict=True)):
        size = float(np.abs(b).max()) if b.size else 0.0
        error = float(np.abs(a.reshape(b.shape) - b).max()) if b.size else 0.0
        if not error <= workload.tolerance * max(size, 1e-6):
            sys.exit(
                f"{workload.name}: result {number} differs from {name} by {error:.3g} of {size:.3g}"
            )


def _time(run: Run) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def measure(workload: Workload, peers: Sequence[str], rounds: int) -> dict[str, Any]:
    """Medians in milliseconds, and plait's ratio to each peer."""
    arrays = workload.data(np.random.default_rng(0))
    runs: dict[str, Run] = {}
    results: dict[str, Results] = {}
    skipped: dict[str, str] = {}
    for name in peers:
        try:
            run, read = PEERS[name](workload, arrays)
            results[name] = read(run())
            runs[name] = run
        except Exception as error:
            if name == "plait":
                raise
            skipped[name] = (str(error).strip().splitlines() or [type(error).__name__])[0][:100]
    others = [name for name in results if name != "plait"]
    if "plait" in results and others:
        _check(workload, others[0], results["plait"], results[others[0]])
    results.clear()
    times: dict[str, list[float]] = {name: [] for name in runs}
    slowest = max((_time(run) for run in runs.values()), default=0.0)
    for _ in range(max(3, min(rounds, int(20 / max(slowest, 1e-3))))):
        for name, run in runs.items():
            run()  # brings its own buffers back into the caches
            times[name].append(min(_time(run), _time(run)))
    found: dict[str, Any] = {
        "workload": workload.name,
        "ms": {name: 1e3 * statistics.median(values) for name, values in times.items()},
        "skipped": skipped,
    }
    if "plait" in times:
        found["ratio"] = {
            name: statistics.median(a / b for a, b in zip(times["plait"], times[name], strict=True))
            for name in others
        }
    return found


def copy_bandwidth() -> float:
    """Bytes read and written per nanosecond by copies of 64 MiB."""
    source = np.ones(1 << 24, dtype=np.float32)
    target = np.empty_like(source)
    np.copyto(target, source)
    best = min(_time(lambda: np.copyto(target, source)) for _ in range(9))
    return 2 * source.nbytes / best / 1e9


def _line(found: dict[str, Any], names: Sequence[str]) -> str:
    cells = [
        f"{found['ms'][name]:10.3f}" if name in found["ms"] else f"{'-':>10}" for name in names
    ]
    ratios = found.get("ratio", {})
    best = max(ratios, key=lambda name: ratios[name], default=None)
    end = f"  {ratios[best]:6.2f} x {best}" if best else ""
    return f"{found['workload']:22}" + "".join(cells) + end


def machine() -> dict[str, Any]:
    """What the numbers were measured on and with."""
    from importlib import metadata

    import llvmlite.binding as llvm

    versions: dict[str, str] = {}
    for package in ("numpy", "torch", "jax", "tinygrad"):
        with contextlib.suppress(metadata.PackageNotFoundError):
            versions[package] = metadata.version(package)
    threads = len(os.sched_getaffinity(0))
    return {"cpu": llvm.get_host_cpu_name(), "threads": threads, "versions": versions}


def table(data: dict[str, Any]) -> str:
    """The results as a table in Markdown; a dash where a framework did not run."""
    results: list[dict[str, Any]] = data["results"]
    names = [name for name in PEERS if any(name in found["ms"] for found in results)]
    lines = ["| workload | " + " | ".join(f"{name} ms" for name in names) + " | to the fastest |"]
    lines.append("|---|" + "---:|" * (len(names) + 1))
    for found in results:
        cells = [f"{found['ms'][name]:.1f}" if name in found["ms"] else "-" for name in names]
        worst = max(found["ratio"].values())
        lines.append(f"| {found['workload']} | " + " | ".join(cells) + f" | {worst:.2f} |")
    return "\n".join(lines)


def main() -> None:
    """Runs what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--workload", action="append", help="a name, or a part of one; repeatable")
    parser.add_argument("--peer", action="append", choices=list(PEERS), help="repeatable")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--table", type=Path)
    options = parser.parse_args()
    if options.table:
        print(table(json.loads(options.table.read_text())))
        return
    names = list(dict.fromkeys(["plait", *(options.peer or PEERS)]))
    chosen = [
        w for w in WORKLOADS if not options.workload or any(p in w.name for p in options.workload)
    ]
    if not chosen:
        parser.error(f"no such workload: expected some of {', '.join(w.name for w in WORKLOADS)}")
    print(f"copy bandwidth: {copy_bandwidth():.1f} GB/s (read and written)")
    print(f"{'median ms':22}" + "".join(f"{name:>10}" for name in names) + "  plait / fastest peer")
    found: list[dict[str, Any]] = []
    said: set[tuple[str, str]] = set()
    for workload in chosen:
        found.append(measure(workload, names, options.rounds))
        print(_line(found[-1], names), flush=True)
        for name, reason in found[-1]["skipped"].items():
            if (name, reason) not in said and not reason.startswith("no numpy form"):
                print(f"  {name} left out: {reason}", flush=True)
                said.add((name, reason))
    ratios = [max(f["ratio"].values()) for f in found if f.get("ratio")]
    if ratios:
        print(f"geometric mean of the ratios: {statistics.geometric_mean(ratios):.2f}")
    if options.json:
        data = {**machine(), "copy_GB_s": copy_bandwidth(), "results": found}
        options.json.write_text(json.dumps(data, indent=1) + "\n")


if __name__ == "__main__":
    main()
