"""``plait-opt``: xDSL's modular optimizer driver with plait's dialects, passes and targets."""

from __future__ import annotations

import argparse
import os
import re
import sys
import time
from collections.abc import Sequence
from functools import partial
from inspect import signature
from io import StringIO
from pathlib import Path
from typing import Any

from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass, PassPipeline
from xdsl.printer import Printer
from xdsl.universe import Universe
from xdsl.utils.arg_spec import ArgSpec, parse_pipeline, parse_spec
from xdsl.utils.exceptions import (
    DiagnosticException,
    VerifyException,
)
from xdsl.xdsl_opt_main import xDSLOptMain

from plait import collector
from plait.errors import PlaitError
from plait.passes import remarks
from plait.passes.pipelines import PIPELINES
from plait.tools.diagnostics import (
    Diagnostic,
    Source,
    SourceError,
    failing_operation,
    place_of,
)
from plait.tools.expected import expectations, mismatches
from plait.tools.guard import first_line, guarded, unforeseen
from plait.tools.levels import complaint as idle
from plait.tools.output import reason, write_text
from plait.tools.usage import (
    UsageError,
    fail,
    known_name,
    parsed_spec,
    pattern,
    suggestion,
    versions,
)


class PlaitOptMain(xDSLOptMain):
    """The driver. What ``--load`` defines is given before options are parsed."""

    loaded: Sequence[Universe] = ()
    running: str | None = None
    """The pass at work."""

    # What is available

    def universes(self) -> list[Universe]:
        from plait.universe import PLAIT_UNIVERSE

        return [PLAIT_UNIVERSE, *type(self).loaded]

    def register_all_dialects(self) -> None:
        from plait.dialects.gpu_shuffle import load_shuffle

        super().register_all_dialects()
        load_shuffle(self.ctx)
        known = set(self.ctx.registered_dialect_names)
        for universe in self.universes():
            for name, factory in universe.all_dialects.items():
                if name not in known:
                    self.ctx.register_dialect(name, factory)

    def register_all_passes(self) -> None:
        super().register_all_passes()
        for universe in self.universes():
            self.available_passes.update(universe.all_passes)

    def register_all_targets(self) -> None:
        from plait.lowering import get_all_targets

        super().register_all_targets()
        for universe in self.universes():
            self.available_targets.update(universe.all_targets)
        self.available_targets.update(get_all_targets())

    def register_all_arguments(self, arg_parser: argparse.ArgumentParser) -> None:
        type(self).version_format = versions()
        super().register_all_arguments(arg_parser)
        arg_parser.prog = "plait-opt"
        arg_parser.error = partial(fail, arg_parser)
        flag: dict[str, Any] = {"default": False, "action": "store_true"}
        add = arg_parser.add_argument
        add("--mlir-print-op-generic", dest="print_op_generic", **flag)
        add("--print-ir-after-all", help="print the IR after each pass, to stderr", **flag)
        add("--print-ir-before-all", help="print the IR before each pass, to stderr", **flag)
        add("--print-ir-after", metavar="PASS", help="print the IR after one pass, to stderr")
        add("--timing", help="print the time each pass takes, to stderr", **flag)
        add("--list-passes", help="print every pass with what it does", **flag)
        add("--remarks", metavar="REGEX", help="print remarks whose id matches, to stderr")
        add("--remarks-filter", choices=["passed", "missed", "analysis"], help="one kind only")
        add("--remarks-output-file", metavar="FILE", help="write remarks as .yaml or .json")
        add("--check-semantics", help="run the program before and after every pass", **flag)
        add("--debug", help="show the traceback of an error", **flag)
        add("--pipeline", help=f"a named pipeline: {', '.join(PIPELINES)}; as a pass in its place")
        add("--load", metavar="FILE.py", help="load passes from a file; may be repeated")

    # The pipeline

    def setup_pipeline(self) -> None:
        specs = parsed_spec("--passes", lambda text: list(parse_pipeline(text)), self.args.passes)
        passes = [self.made_pass(spec) for spec in specs]
        self.check_target()
        if self.args.print_ir_after:
            name = known_name("pass", self.args.print_ir_after, self.available_passes)
            if name not in (each.name for each in passes):
                raise UsageError(f"--print-ir-after: pass '{name}' is not among those that run")
        self.remarks_pattern = pattern("--remarks", self.args.remarks or "")
        self.timings: list[tuple[str, float]] = []
        self.started = time.perf_counter()
        self.pipeline = PassPipeline(tuple(passes), self.between_passes)

    def made_pass(self, spec: ArgSpec) -> ModulePass:
        known_name("pass", spec.name, self.available_passes)
        try:
            return self.available_passes[spec.name]().from_pass_spec(spec)
        except (ValueError, TypeError, ImportError) as error:
            raise UsageError(f"pass '{spec.name}': {first_line(error)}") from error

    def check_target(self) -> None:
        """Raises :class:`UsageError` for options that the target does not have."""
        spec = parse_spec(self.args.target)
        factory: Any = self.available_targets[spec.name]
        try:
            if not signature(factory).parameters:
                factory().from_spec(spec)
        except (ValueError, TypeError, ImportError) as error:
            raise UsageError(f"target '{spec.name}': {first_line(error)}") from error

    def between_passes(
        self, previous: ModulePass | None, module: ModuleOp, following: ModulePass | None
    ) -> None:
        now = time.perf_counter()
        if previous is not None:
            self.timings.append((previous.name, now - self.started))
            if self.args.print_ir_after_all or self.args.print_ir_after == previous.name:
                self.print_ir(f"IR after {previous.name}", module)
        if not self.args.disable_verify:
            module.verify()
        if self.args.check_semantics:
            if previous is None:
                from plait.tools.semantics import Semantics

                self.semantics = Semantics()
            self.semantics.check(module, previous.name if previous is not None else None)
        self.running = None if following is None else following.name
        remarks.enter(self.running or "")
        if following is not None:
            if self.args.print_ir_before_all:
                self.print_ir(f"IR before {following.name}", module)
            complaint = idle(following.name, module)
            if complaint is not None:
                print(f"{self.args.input_file or '<stdin>'}: warning: {complaint}", file=sys.stderr)
        self.started = time.perf_counter()

    def print_ir(self, title: str, module: ModuleOp) -> None:
        text = StringIO()
        Printer(text).print_op(module)
        print(f"// -----// {title} //----- //\n{text.getvalue()}\n", file=sys.stderr)

    # Running

    def run_all(self) -> int:
        """Processes every piece of the input; 0 if all went well."""
        if self.args.list_passes:
            self.list_passes()
            return 0
        name = self.args.input_file or "-"
        if name.endswith(".py"):
            raise PlaitError(f"{name}: plait-opt takes IR; `plait run` takes Python programs")
        text = read_text(name)
        pieces = (
            re.split(r"^// -----.*$", text, flags=re.M) if self.args.split_input_file else [text]
        )
        outputs: list[str] = []
        failed = False
        line = 1
        with remarks.collect() as found:
            for piece in pieces:
                output, complaints = self.process(piece, name, line, found)
                line += piece.count("\n")
                for complaint in complaints:
                    print(complaint, file=sys.stderr)
                failed = failed or bool(complaints)
                outputs.append(output)
        self.finish(found)
        if not failed or self.args.verify_diagnostics or any(outputs):
            write_text(self.args.output_file or "-", "// -----\n".join(outputs))
        return int(failed)

    def process(
        self, text: str, name: str, first_line: int, found: list[remarks.Remark]
    ) -> tuple[str, list[str]]:
        """The output of one piece, and what to complain about."""
        file = "<stdin>" if name == "-" else name
        start = len(found)
        output, produced = self.diagnosed(text, file, first_line)
        if not self.args.verify_diagnostics:
            return output, [d.show(text, first_line, file) for d in produced]
        produced += [
            Diagnostic("remark", str(remark).removeprefix("remark: ")) for remark in found[start:]
        ]
        return output, mismatches(expectations(text, first_line), produced, file)

    @collector.paused()
    def diagnosed(self, text: str, file: str, first_line: int) -> tuple[str, list[Diagnostic]]:
        """Parses, runs the passes and prints; an error becomes a diagnostic."""
        source = Source(text, file, first_line)
        module: ModuleOp | None = None
        try:
            module = source.parse(self.ctx, not self.args.no_implicit_module)
            self.apply_passes(module)
            return self.output_resulting_program(module), []
        except SourceError as error:
            return "", [error.diagnostic]
        except VerifyException as error:
            culprit = failing_operation(module) if module is not None else None
            name = f"'{culprit.name}': " if culprit is not None else ""
            message = " ".join(str(error).split("\n")[0].split())
            return "", [Diagnostic("error", name + message, place_of(culprit))]
        except DiagnosticException as error:
            place = place_of(getattr(error, "operation", None))
            return "", [Diagnostic("error", " ".join(str(error).split("\n")[0].split()), place)]
        except RecursionError:
            return "", [Diagnostic("error", "regions are nested too deeply")]
        except PlaitError:
            raise
        except Exception as error:
            if self.running is None or self.args.debug:
                raise
            return "", [Diagnostic("error", f"pass '{self.running}' failed: {unforeseen(error)}")]
        finally:
            self.running = None
            remarks.enter("")

    def finish(self, found: list[remarks.Remark]) -> None:
        """What comes after the output: remarks and timings."""
        wanted = [r for r in found if self.args.remarks_filter in (None, r.kind)]
        if self.args.remarks is not None:
            for remark in wanted:
                if self.remarks_pattern.search(remark.id):
                    print(remark, file=sys.stderr)
        if self.args.remarks_output_file:
            from plait.tools.remark_files import write_remarks

            write_remarks(wanted, Path(self.args.remarks_output_file))
        if self.args.timing:
            for name, seconds in self.timings:
                print(f"{seconds * 1e3:10.2f} ms  {name}", file=sys.stderr)

    def list_passes(self) -> None:
        """Every pass but xDSL's own: those of plait, of installed packages, of loaded files."""
        from xdsl.transforms import get_all_passes

        for name in sorted(set(self.available_passes) - set(get_all_passes())):
            documentation = (self.available_passes[name]().__doc__ or "").strip()
            print(f"{name:32} {documentation.partition(chr(10))[0]}".rstrip())


def read_text(name: str) -> str:
    """The text of a file, or of standard input for ``-``; errors are one line."""
    try:
        data = sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
    except OSError as error:
        raise PlaitError(f"{name}: cannot read: {reason(error)}") from None
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise PlaitError(f"{name}: not UTF-8 text: byte {error.start} does not decode") from None


def arranged(args: Sequence[str]) -> tuple[list[str], list[str]]:
    """Options with passes given as flags and pipelines by name gathered into one ``-p``, in order;
    and the files to load."""
    from plait.lowering import get_all_passes as lowerings
    from plait.passes import get_all_passes as passes

    names = {*passes(), *lowerings(), "canonicalize", "cse"}
    rest: list[str] = []
    pipeline: list[str] = []
    loads: list[str] = []
    queue = list(args)
    while queue:
        arg = queue.pop(0)
        flag, equals, value = arg.partition("=")

        def taken(equals: str = equals, value: str = value, flag: str = flag) -> str:
            if equals:
                return value
            if not queue:
                raise UsageError(f"option {flag} needs a value")
            return queue.pop(0)

        if flag in ("-p", "--passes"):
            pipeline.append(taken())
        elif flag == "--pipeline":
            name = taken()
            if name not in PIPELINES:
                raise UsageError(
                    f"unknown pipeline '{name}': expected one of {', '.join(PIPELINES)}"
                    f"{suggestion(name, PIPELINES)}"
                )
            pipeline.extend(PIPELINES[name])
        elif flag == "--load":
            loads.append(taken())
        elif flag.startswith("--") and flag[2:] in names:
            options = ",".join(value.split()) if equals else ""
            pipeline.append(f"{flag[2:]}{{{options}}}" if options else flag[2:])
        else:
            rest.append("--remarks=" if arg == "--remarks" else arg)
    if pipeline:
        # xDSL wants option values such as cuda:sm_80 in quotes; people do not.
        spec = re.sub(r'=([^,"{}\s]*:[^,"{}\s]*)', r'="\1"', ",".join(pipeline))
        rest += ["-p", spec]
    return rest, loads


def main(args: Sequence[str] | None = None) -> int:
    """The command ``plait-opt``; returns its exit status."""
    given = list(sys.argv[1:] if args is None else args)
    debug = "--debug" in given or bool(os.environ.get("PLAIT_DEBUG"))

    def run() -> int:
        rest, loads = arranged(given)
        cls = PlaitOptMain
        if loads:
            from plait.tools.loading import load

            cls = type("LoadedOptMain", (PlaitOptMain,), {"loaded": load(loads)})
        return parsed_spec("--target", lambda words: cls(args=words), rest).run_all()

    return guarded(run, debug)


if __name__ == "__main__":
    sys.exit(main())


__all__ = ["PlaitOptMain", "main", "read_text"]
