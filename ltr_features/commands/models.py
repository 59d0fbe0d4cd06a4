"""Matching models: ``models list``, ``models info`` and ``explain``."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from letor.errors import InputError
from ltr_base.docstrings import summary
from ltr_base.names import listed
from ltr_features.commands import completion
from ltr_features.commands.options import Commands, echo

if TYPE_CHECKING:
    from ssi_models.base import MatchingModel
    from ssi_models.vocabulary import Vocabulary

app = Commands(help="Matching models: list, inspect and fit them.", no_args_is_help=True)


@app.command("list")
def models_list(
    model: Annotated[
        str | None,
        typer.Argument(
            help="A model, to see its parameters; all by default.", autocompletion=completion.models
        ),
    ] = None,
) -> None:
    """List the models, or show the description of one and its parameters with their defaults.

    Example: ltr-features models list ssi"""
    from ltr_features.studies.page.tables import aligned
    from ssi_models.registry import MODELS, get_model

    if model is not None:
        try:
            kind = get_model(model)
        except ValueError as error:
            raise InputError(str(error)) from None
        echo(inspect.getdoc(kind) or "")
        echo("\nAll parameters and their defaults:")
        for name, default in kind.default_params().items():
            echo(f"    {name} = {default!r}")
        return
    header = ["name", "matrices", "learns from", "model"]
    lines = [[k.name, k.inputs, k.learns_from, summary(k)] for k in MODELS.values()]
    echo(aligned(header, lines, left=len(header)))


@app.command("info")
def models_info(
    file: Annotated[Path, typer.Argument(help="Model file (.safetensors).")],
) -> None:
    """Show the contents of a model file: class, parameters, vocabulary, training, arrays.

    Example: ltr-features models info ssi.safetensors"""
    from ltr_features.columns.fitted import notes_path, read_notes
    from ltr_features.text.analyzer import Analyzer
    from ssi_models.persistence import load_tensors
    from ssi_models.registry import get_model, load_model

    header, arrays = load_tensors(file)
    kind = get_model(header["model"])
    echo(f"{file}: {kind.name}, {summary(kind)}\n")
    for name, value in header["params"].items():
        echo(f"    {name} = {value!r}")
    echo("")
    words = "with their words" if "vocabulary.bytes" in arrays else "without their words"
    echo(f"words of documents: {header['n_words']:,}, {words}")
    echo(f"words of queries: {header['n_query_words']:,}")
    recipe = header["recipe"]
    echo(f"text analysis: {Analyzer.noted(recipe) or recipe or 'not noted'}")
    echo(f"weighting: {'tf-idf' if 'weighting.idf' in arrays else 'not noted'}")
    if notes_path(file).is_file():  # of `models fit`; the models of folds have none
        column, _ = read_notes(file)
        for setting in ("field", "terms", "min_document_frequency", "heaviest"):
            echo(f"{setting.replace('_', ' ')}: {getattr(column, setting) or 'all'}")
    model = load_model(file)
    for line in (*_fitted_facts(header["fitted"]), *improvement(model)):
        echo(line)
    for remark in model.remarks:
        echo(f"remark: {remark}")
    for name, array in arrays.items():
        shape = " x ".join(f"{n:,}" for n in array.shape)
        # A single number, such as a factor that was chosen, is told itself.
        told = f"{array.item():g}" if array.size == 1 else f"{array.nbytes / 1e6:.1f} MB"
        echo(f"array {name}: {array.dtype} [{shape}], {told}")


def explain(
    file: Annotated[Path, typer.Argument(help="Model file (.safetensors).")],
    words: Annotated[
        list[str] | None,
        typer.Argument(help='Query words, or "several words" as one query.'),
    ] = None,
    count: Annotated[int, typer.Option(min=1, help="Words to show for each.")] = 5,
) -> None:
    """Show what a model learned: the document words that best match a query word, with scores.

    For a model with correlated feature hashing it also shows the frequent words that stand for a
    rare one. Without WORDS it shows the words of a topic model's topics, or the table of a
    translation model. A model of letter trigrams shows trigrams, and accepts any word that has some
    of them; if it counts words, as topic and translation models do, one trigram at a time. Remarks
    on training, such as that the model learned nothing, come first.

    Example: ltr-features explain ssi.safetensors glacier "stone bridge" --count 10"""
    from ssi_models.registry import load_model

    model = load_model(file)
    if model.vocabulary_ is None:
        raise InputError(f"{file}: the model was fitted without its vocabulary; fit it with one")
    if model.of_its_documents:
        raise InputError(f"{file}: {model.name!r} scores the documents of its fit, not their words")
    for remark in model.remarks:
        echo(f"{model.name}: {remark}")
    if words:
        refused: list[str] = []  # told at the end, so that they stop no other word
        for word in words:
            try:
                _explain_word(model, model.vocabulary_, word, count)
            except InputError as error:
                refused.append(str(error))
        if refused:
            raise InputError("\n".join(dict.fromkeys(refused)))
    elif hasattr(model, "explain"):
        for title, near in _entries(model.explain(count)):
            _show(title, near)
    else:
        raise InputError(f"{model.name!r} has no topics to show; name one or more words")


def _explain_word(model: MatchingModel, vocabulary: Vocabulary, word: str, count: int) -> None:
    from ltr_features.columns.term_space import nearest_terms
    from ltr_features.text.analyzer import Analyzer

    if model.n_query_words_ != model.n_words_:
        raise InputError(
            f"queries of this {model.name} model have words of their own, which its file does not "
            "hold; use nearest_words of the model with the number of the word"
        )
    analyzer = Analyzer.noted(model.recipe_) or Analyzer(min_length=1)
    parts = [word] if word in vocabulary else analyzer.tokens(word) or [word]
    rows = _rows_to_explain(model, vocabulary, word, parts)
    if model.only_same_words:
        _show_weights(model, vocabulary, word, rows)
        return
    near = nearest_terms(model, vocabulary, parts, rows, count)
    if len(rows) == 1 and hasattr(model, "top_matches") and (hashed := model.top_matches(rows[0])):
        _show(f"{word} is hashed to (DICE)", [(vocabulary[j], x) for j, x in hashed])
    _show(f"{word} matches", [(vocabulary[j], x) for j, x in near])


def _rows_to_explain(
    model: MatchingModel, vocabulary: Vocabulary, word: str, parts: Sequence[str]
) -> list[int]:
    """The rows of the terms of some words, the parts of what was asked for."""
    import numpy as np

    from ltr_features.text.letter_ngrams import rows_of_word

    rows_of = {part: np.concatenate(rows_of_word(vocabulary, part)) for part in parts}
    lacking = [part for part, found in rows_of.items() if not len(found)]
    if len(lacking) == len(rows_of):
        raise InputError(
            f"{lacking[0]!r} is not a word of the model{_near(lacking[0], vocabulary)}"
        )
    if lacking:
        echo(f"{word}: left out, as the model lacks it: {listed(lacking, 5)}", err=True)
    rows: list[int] = np.unique(np.concatenate(list(rows_of.values()))).tolist()
    if model.inputs == "counts" and len(rows) > 1:
        rows = [row for row in rows if [vocabulary[row]] == parts] or rows
        if len(rows) > 1:
            terms = listed([vocabulary[row] for row in rows], 5)
            raise InputError(f"{model.name!r} explains single terms; {word!r} is several: {terms}")
    return rows


def _show_weights(
    model: MatchingModel, vocabulary: Vocabulary, word: str, rows: Sequence[int]
) -> None:
    """Tell that a word matches itself alone, with the weights of words if the model has any."""
    weights = getattr(model, "diagonal_", ())  # else each word's own weight says nothing
    own = [f"{vocabulary[row]} {weights[row]:.3f}" for row in rows if len(weights)]
    if len(rows) > 1:
        told = f"its own words alone{', weights ' if own else ''}{', '.join(own)}"
    else:
        told = f"itself alone{f', with the weight {weights[rows[0]]:.3f}' if own else ''}"
    echo(f"{word} matches {told}")


def _near(word: str, vocabulary: Vocabulary) -> str:
    """Hint with words that begin like an unknown one, as the vocabulary may hold stems."""
    for length in range(len(word) - 1, 2, -1):
        found = [v for v in vocabulary if v.startswith(word[:length])]
        if found:
            return f"; words that begin alike: {listed(found, 5)}"
    return ""


def _entries(explained: Any) -> Iterator[tuple[str, list[tuple[Any, float]]]]:
    """(title, words) of a topic model's topics, or of a translation table."""
    if isinstance(explained, dict):
        for word, near in explained.items():
            yield f"{word} generates", near
        return
    for number, sides in enumerate(explained):
        for side, near in sides.items():
            yield f"topic {number}, {side}", near


def _show(title: str, near: list[tuple[Any, float]]) -> None:
    # Probabilities of words may be small; three decimals would show them all as 0.
    shown = ", ".join(f"{word} {x:{'.3f' if abs(x) >= 0.01 else '#.3g'}}" for word, x in near)
    echo(f"{title}: {shown or 'no word'}")


def _fitted_facts(fitted: dict[str, Any]) -> Iterator[str]:
    """Lines with a fact about training each; for long lists their length."""
    for name, value in fitted.items():
        if name == "chosen":  # of WeighsWords
            yield f"word weight chosen by held-out queries: {'yes' if value else 'no'}"
        elif name == "epochs":
            yield f"epochs: {max(len(value) - 1, 0)}"
        elif isinstance(value, list | dict):
            yield f"{name.replace('_', ' ')}: {len(value):,}"
        else:
            yield f"{name.replace('_', ' ')}: {value}"


def improvement(model: MatchingModel) -> Iterator[str]:
    """What training by epochs made of the start, on queries that were held out."""
    from ssi_models.training.trainable import TrainableModel

    if isinstance(model, TrainableModel) and (epochs := model.history_.epochs):
        before, after = map(abs, (epochs[0].validation, model.history_.best_validation))
        measure = model.training.validation_measure.replace("map", "MAP").replace("_", " ")
        held_out = "training queries" if model.holds_out_queries else "pairs of training queries"
        change = f"{before:.4f} before training, {after:.4f} at the epoch kept"
        yield f"{measure} on held-out {held_out}: {change}"
