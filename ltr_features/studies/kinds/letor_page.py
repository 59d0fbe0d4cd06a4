"""What the report of a comparison of rankers shows."""

from __future__ import annotations

from letor.measures import parse_measure
from ltr_features.studies.config import slug
from ltr_features.studies.kinds.letor_config import StudyConfig
from ltr_features.studies.kinds.letor_tables import Results, Tables, choices
from ltr_features.studies.page.pages import Document, Section
from ltr_features.studies.page.tables import Cell, Column, Columns, Table
from ltr_features.studies.page.verdicts import p_value, signed, value


def document(config: StudyConfig, results: Results, tables: Tables) -> Document:
    """Means and comparisons under each scheme of folds, then what was expected."""
    sections = [
        Section(
            name=slug(scheme.name),
            title=scheme.name.capitalize(),
            tables=[
                _means(config, tables, scheme.name),
                *_comparisons(config, tables, scheme.name, grouped=results.groups is not None),
            ],
            folded={"Parameters chosen, number of folds": choices(results.trained, scheme.name)},
        )
        for scheme in config.schemes
    ]
    if tables.checks:
        checks = [("✓" if held else "✗", text) for held, text in tables.checks]
        sections.append(Section("expected", "Expectations", checks=checks))
    definitions = {n: parse_measure(text).definition for n, text in config.measures.items()}
    definitions["Tests"] = tables.settings.description
    measure = config.compare_measures[0]
    means = {
        str(scheme).capitalize(): dict(zip(rows["ranker"], rows[measure], strict=True))
        for scheme, rows in tables.means.groupby("scheme", sort=False)
    }
    return Document(
        config.title, config.introduction, sections, means, measure, config.baseline,
        notes=config.notes, definitions=definitions,
    )  # fmt: skip


def _means(config: StudyConfig, tables: Tables, scheme: str) -> Table:
    """Ours with standard errors, then the references."""
    errors = tables.errors.set_index(["scheme", "ranker"])
    ours = tables.means[tables.means["scheme"] == scheme]
    best = ours[list(config.measures)].max()
    rows: list[list[Cell | str]] = []
    for mean in ours.to_dict(orient="records"):
        error = errors.loc[(scheme, mean["ranker"])]
        values = [
            Cell(f"{value(mean[m])} ± {value(error[m])}", strong=mean[m] == best[m])
            for m in config.measures
        ]
        rows.append([mean["ranker"], *values, value(mean["validation"])])
    for reference in config.references:
        if reference.scheme == scheme:
            found = [reference.values.get(m) for m in config.measures]
            values = [Cell("–" if x is None else value(x)) for x in found]
            rows.append([Cell(reference.label, style="biased"), *values, "–"])
    n = tables.folds.loc[tables.folds["scheme"] == scheme, "fold"].nunique()
    fits = f" and over {config.repeats} fits" if config.repeats > 1 else ""
    caption = (
        f"Mean over {n} folds of the mean over the test queries{fits} ± its standard error over "
        f"queries; bold: the largest; grey: published elsewhere. Validation: "
        f"{config.tune_measure} of the chosen parameters on the validation queries."
    )
    return Table(f"Means, {scheme}", ["Ranker", *config.measures, "Validation"], rows, caption)


def _comparisons(config: StudyConfig, tables: Tables, scheme: str, *, grouped: bool) -> list[Table]:
    """Every ranker against the baseline."""
    if not len(tables.comparisons):
        return []
    table = tables.comparisons[tables.comparisons["scheme"] == scheme]
    rows: list[list[Cell | str]] = []
    for row in table.to_dict(orient="records"):
        refitted = row["n_fits"] > 1
        style = ("gain" if row["difference"] > 0 else "loss") if row["significant"] else "unsure"
        spread = f"{row['n_fits']} fits: spread {value(row['spread'])}" if refitted else ""
        rows.append(
            [
                str(row["system"]),
                row["measure"],
                Cell(signed(row["difference"]), spread, style, strong=True),
                f"{signed(row['low'])} to {signed(row['high'])}",
                Cell(p_value(row["p"]), f"refits {p_value(row['p_refits'])}" if refitted else ""),
                p_value(row["p_corrected"]),
                f"{row['won']} / {row['tied']} / {row['lost']}",
                *([f"{row['design_effect']:.1f}"] if grouped else []),
            ]
        )
    columns: Columns = [
        "Ranker", Column("Measure", number=False), "Difference", "95% interval", "p",
        "p corrected", "Won / tied / lost", *(["Design effect"] if grouped else []),
    ]  # fmt: skip
    told = ""
    if grouped:
        n = int(table["n_groups"].max())
        told = f"The queries belong to {n:,} groups and are tested by group."
    return [Table(f"Differences against {config.baseline}, {scheme}", columns, rows, told)]
