"""Tables for papers: means with significance marks, in LaTeX."""

from __future__ import annotations

from ltr_features.studies.page.report import Report, Study
from ltr_features.studies.page.tables import baseline_letters, marks_note, significance_marks
from ltr_features.studies.page.verdicts import value

_SPECIAL = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "▲": r"$\blacktriangle$",
    "▼": r"$\blacktriangledown$",
    "−": "$-$",
}


def latex_tables(report: Report) -> str:
    """A ``table`` environment per study; they need the packages ``booktabs`` and ``amssymb``."""
    head = "% \\usepackage{booktabs,amssymb}\n"
    return head + "\n".join(latex_table(study) for study in report.studies)


def latex_table(study: Study) -> str:
    """Mean of each measure for each system, the best in bold, ▲ and ▼ where it is significantly
    better or worse than the baseline of the letter behind."""
    marks, letters = significance_marks(study), baseline_letters(study)
    shown = {
        m: {s.name: value(s.per_query[m].mean()) for s in study.systems} for m in study.measures
    }
    lines = []
    for system in study.systems:
        letter = letters.get(system.name, "")
        cells = [escaped(system.name) + (f" ({letter})" if letter else "")]
        for m in study.measures:
            number = shown[m][system.name]
            number = rf"\textbf{{{number}}}" if number == max(shown[m].values()) else number
            cells.append(number + _marks(marks.get((system.name, m), "")))
        lines.append(" & ".join(cells) + r" \\")
    header = " & ".join(["System", *map(escaped, study.measures)]) + r" \\"
    return "\n".join(
        [
            r"\begin{table}",
            rf"\caption{{{escaped(study.name)}. {escaped(marks_note(study))}}}",
            rf"\begin{{tabular}}{{l{'l' * len(study.measures)}}}",
            r"\toprule",
            header,
            r"\midrule",
            *lines,
            r"\bottomrule",
            r"\end{tabular}",
            r"\end{table}",
            "",
        ]
    )


def escaped(text: str) -> str:
    """Text with LaTeX's special characters written out."""
    return "".join(_SPECIAL.get(character, character) for character in text)


def _marks(marks: str) -> str:
    """▲a▼b as one superscript."""
    if not marks:
        return ""
    signs = {"▲": r"\blacktriangle ", "▼": r"\blacktriangledown "}
    return "$^{" + "".join(signs.get(c, rf"\mathrm{{{c}}}") for c in marks) + "}$"
