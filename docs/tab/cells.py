"""Runs a notebook's cells one by one, without IPython. What a cell shows is a line of JSON each, an output of nbformat."""

import ast
import base64
import io
import json
import linecache
import sys
import traceback
import types

LINES, shown = sys.stdout, []
LEFT_OUT = ()  # docs/web.py fills it in


def send(output_type, **rest):
    shown.append({"output_type": output_type, **rest})
    LINES.write(json.dumps(shown[-1]) + "\n")
    LINES.flush()


class Said(io.TextIOBase):
    """What a cell prints, under the name of its stream."""

    def __init__(self, name):
        self.name = name

    def write(self, text):
        send("stream", name=self.name, text=text)
        return len(text)


class Image(bytes):
    """A PNG."""


def bundle(shown):
    """What a notebook keeps of a value, by media type."""
    if isinstance(shown, Image):
        return {"image/png": base64.b64encode(shown).decode(), "text/plain": "<picture>"}
    html = getattr(shown, "_repr_html_", lambda: None)()
    return {"text/plain": repr(shown)} | ({"text/html": html} if html else {})


def display(shown, raw=False, metadata=None, display_id="", update=False):
    data = shown if raw else bundle(shown)
    send("display_data", data=data, metadata=metadata or {}, id=display_id, update=update)


def in_place_of_ipython():
    """What the kit and pyplot ask of IPython; and nobody else trains in a tab, so that no file is locked."""
    events = types.SimpleNamespace(register=lambda *_: None)  # pyplot's
    shell = types.SimpleNamespace(kernel=True, events=events)
    inside = types.SimpleNamespace(display=display, Image=Image)
    sys.modules["IPython"] = types.SimpleNamespace(get_ipython=lambda: shell, display=inside, version_info=(9, 0))
    sys.modules["IPython.display"] = inside
    lock = types.SimpleNamespace(acquire=lambda: None, release=lambda: None)
    sys.modules["filelock"] = types.SimpleNamespace(FileLock=lambda path: lock)


def pictures():
    """Those that the cell has drawn with pyplot."""
    if plt := sys.modules.get("matplotlib.pyplot"):
        for number in plt.get_fignums():
            drawn = io.BytesIO()
            plt.figure(number).savefig(drawn, format="png", bbox_inches="tight")
            display(Image(drawn.getvalue()))
        plt.close("all")


def models_kept():
    """Where a lesson trains and predicts, predictions of that very training are read if the page brings them."""
    from xcrepro.models.base import Model
    from xcrepro.repro.inputs import trained

    own = Model.fit

    def fit(model, X, Y):
        one = trained.training(model, X, Y, of="lesson")

        def predict(X, k=5):
            Model.fit = own
            try:
                return one.predictions(X, k)
            finally:
                Model.fit = fit

        model.predict = predict
        return model

    Model.fit = fit


names = {"__name__": "__main__", "In": [""]}


def cell(source, committed=""):
    """Run one cell; where its committed outputs are given, as JSON, its own are compared with them."""
    shown.clear()
    names["In"].append(source)
    count, file = len(names["In"]) - 1, f"<cell {len(names['In']) - 1}>"
    linecache.cache[file] = (len(source), None, source.splitlines(True), file)
    ends = True
    try:
        tree = ast.parse(source, file)
        last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, file, "exec"), names)
        value = eval(compile(ast.Expression(last.value), file, "eval"), names) if last else None
        if value is not None:
            send("execute_result", data=bundle(value), metadata={}, execution_count=count)
        pictures()
    except BaseException as fault:
        if (getattr(fault, "name", "") or "").replace(".", "/") in LEFT_OUT:
            fault.add_note("The Python of this page is without it, to be small: JupyterLab on your machine runs this.")
        inside = [line for line in traceback.extract_tb(fault.__traceback__) if line.filename.startswith("<cell")]
        said = traceback.format_list(inside) + traceback.format_exception_only(fault)
        send("error", ename=type(fault).__name__, evalue=str(fault), traceback="".join(said).splitlines())
        ends = False
    differs = "not compared"
    if committed:
        from xcrepro.repro.engine import compare_outputs, tidy

        texts = tidy.output_text(json.loads(committed)), tidy.output_text(shown)
        differs = str(compare_outputs.difference(*texts) or "")
    send("end", ends=ends, differs=differs)


in_place_of_ipython()
sys.stdout, sys.stderr = Said("stdout"), Said("stderr")
