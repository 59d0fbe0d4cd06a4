"""Collections with links that every Debian has, in BEIR's layout, to try models on data that nobody
tuned them for (``bench_defaults.py --own FOLDER/manuals``):

- manuals: the pages of the package manpages and manpages-dev; links are those under SEE ALSO,
  which are in no text.
- foldoc, jargon: the entries of two dictionaries (dict-foldoc, dict-jargon) and their links,
  whose words stay in the text, as on the web.
- packages: names and one-line descriptions of programs; links are their recommended and suggested
  packages.
- tags: the same documents; a query is a tag, relevant are the 3 to 200 packages that have it.
- descriptions: the descriptions of all packages without their first lines, which are the queries,
  1,000 of them to test (needs ``apt-get -o Acquire::Languages=en update``).
- ratings.csv: the same queries as a shop has them, a table of up to 8 packages of each tag and up
  to 12 others that share a word with it, or another tag with its packages. What columns are worth
  there, ``ltr-features run tests/benchmarks/rated_packages.toml --data FOLDER --out OUT`` says.
- rfcs, groups.tsv: titles and abstracts of RFC 3000 to 6999 (doc-rfc-*, of the section non-free);
  the queries are titles of 900 later ones, relevant are those that they cite, as normative
  references (2) or others (1). The groups are the queries' working groups. What columns are worth
  there, ``ltr-features run tests/benchmarks/cited_rfcs.toml --data FOLDER --out OUT`` says.
- german, french, japanese, ...: the lines of packages in that language, to find the English one by
  (``apt-get -o Acquire::Languages=en,de,fr,ja,it,es,ru,pl,pt_BR,da,zh_CN update`` fetches them).
- verses: Spanish verses of the Bible, to find the English one by, of chapters that are not trained
  on; left out without the packages sword-text-sparv, sword-text-web and diatheke.

    python tests/benchmarks/debian_collections.py --root / --out FOLDER

reads what is installed below ``--root`` (``dpkg-deb -x PACKAGE.deb ROOT`` unpacks without
installing), what ``apt-cache dumpavail`` says, and translations in ``/var/lib/apt/lists``. Numbers
depend on Debian's release.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import os
import random
import re
import subprocess
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

DICTIONARIES = ("foldoc", "jargon")
#: The digits of the numbers in a dictionary's index.
_DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
#: Packages that are parts of others, or come by the hundred.
_PARTS = re.compile(
    r"^(lib|linux-|task-|gir1|golang-|python3-|ruby-|node-|r-|fonts-|elpa-|hunspell)"
    r"|-(dev|dbg|dbgsym|doc|data|common|l10n.*)$|^(firefox-esr|thunderbird)-l"
)
_TAGGED = range(3, 201)
LANGUAGES = {
    "german": "de", "french": "fr", "japanese": "ja", "italian": "it", "spanish": "es",
    "russian": "ru", "polish": "pl", "portuguese": "pt_BR", "danish": "da", "chinese": "zh_CN",
}  # fmt: skip
_N_TEST_PAIRS, _N_TEST_CHAPTERS = 500, 20
#: Words of a description, descriptions with the same first line, and lines that are tested.
_LEAST_WORDS, _MOST_ALIKE, _N_TEST_LINES = 12, 3, 1000
_MOST_RELEVANT, _MOST_OTHERS = 8, 12
_RFC_DOCUMENTS, _N_RFC_QUERIES, _LEAST_CITED = range(3000, 7000), 900, 2
#: RFCs that nearly all others cite, for the words that they use.
_RFC_WORDS = {2119, 8174}

Documents = Mapping[str, tuple[str, str]]
Pairs = set[tuple[str, str]]
Grades = Mapping[tuple[str, str], int]


def write(
    folder: Path,
    documents: Documents,
    links: Pairs | Grades,
    queries: Mapping[str, str],
    trains: Collection[str] = (),
) -> None:
    """A BEIR folder; ``links`` are of documents, or judgements where there are queries (of grade 1
    if they have none). Those of the queries in ``trains`` have a file of their own."""
    (folder / "qrels").mkdir(parents=True, exist_ok=True)
    # The layout wants a query, also where links are all that is used.
    asked, judged = (queries, links) if queries else ({"q": "none"}, {("q", next(iter(documents)))})
    grades = judged if isinstance(judged, Mapping) else dict.fromkeys(judged, 1)
    lines = [
        {"_id": name, "title": title, "text": text} for name, (title, text) in documents.items()
    ]
    _write(folder / "corpus.jsonl", map(json.dumps, lines))
    _write(
        folder / "queries.jsonl",
        (json.dumps({"_id": name, "text": text}) for name, text in asked.items()),
    )
    files = defaultdict(lambda: ["query-id\tcorpus-id\tscore"])
    for (query, document), grade in sorted(grades.items()):
        files["train" if query in trains else "test"].append(f"{query}\t{document}\t{grade}")
    for name, rows in files.items():
        _write(folder / f"qrels/{name}.tsv", rows)
    if not queries:
        _write(folder / "links.tsv", ("\t".join(link) for link in sorted(links)))
    print(f"{folder}: {len(documents):,} documents, {len(links):,} links or judged pairs")


def _write(path: Path, lines: Iterable[str]) -> None:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def dictionary(root: Path, name: str) -> tuple[Documents, Pairs]:
    """Entries of a dictd dictionary by their place in the file."""
    with gzip.open(root / f"usr/share/dictd/{name}.dict.dz") as file:
        data = file.read()
    entries, place_of = {}, {}
    index = root / f"usr/share/dictd/{name}.index"
    for line in index.read_text(encoding="utf-8").splitlines():
        head, start, size = line.split("\t")[:3]
        if not head.startswith("00"):  # of the dictionary itself
            place = _number(start)
            place_of[head.lower()] = place
            entries[place] = data[place : place + _number(size)].decode("utf-8", "replace")
    documents, links = {}, set()
    for place, entry in entries.items():
        title, _, text = entry.partition("\n")
        text = " ".join(text.split())
        documents[str(place)] = (title.strip(), re.sub("[{}]", "", text))
        targets = (place_of.get(m.strip().lower()) for m in re.findall(r"\{([^{}]+)\}", text))
        links |= {(str(place), str(t)) for t in targets if t not in (None, place)}
    return documents, links


def _number(digits: str) -> int:
    value = 0
    for digit in digits:
        value = 64 * value + _DIGITS.index(digit)
    return value


def manuals(root: Path) -> tuple[Documents, Pairs]:
    """Manual pages of sections 1 to 8 in English, without their SEE ALSO."""
    pages = {}
    for path in sorted((root / "usr/share/man").glob("man[1-8]/*.gz")):
        if path.is_symlink():  # another name of a page
            continue
        with gzip.open(path, "rt", encoding="utf-8", errors="replace") as file:
            page = file.read()
        if not page.lstrip().startswith(".so"):  # the same
            pages[path.name.removesuffix(".gz").lower()] = page
    documents, links = {}, set()
    for name, page in pages.items():
        text, _, rest = page.partition(".SH SEE ALSO")
        named = re.findall(r"^\.BR (\S+) \((\d)\)", rest.split("\n.SH")[0], re.M)
        targets = {f"{other}.{section}".lower() for other, section in named}
        links |= {(name, target) for target in targets & pages.keys() - {name}}
        documents[name] = (name, _plain(text)[:6000])
    return documents, links


def _plain(page: str) -> str:
    """The words of a page without its typesetting."""
    page = re.sub(r'^[.\']\\?".*$|^\.[a-z]+.*$|^\.[A-Z]{1,2}\b', "", page, flags=re.M)
    page = re.sub(r"\\f.|\\-|\\&|\\c|\\\(..|\\\[[^]]*\]|\\.", "", page)
    return " ".join(page.split())


def packages() -> tuple[Documents, Pairs, dict[str, list[str]]]:
    """Programs, links between them, and the packages of each tag."""
    available = subprocess.run(
        ["apt-cache", "dumpavail"], check=True, capture_output=True, text=True
    ).stdout
    found = {}
    for paragraph in available.split("\n\n"):
        lines = [line.split(": ", 1) for line in paragraph.split("\n") if line[:1] != " "]
        about = {line[0]: line[1] for line in reversed(lines) if len(line) == 2}
        name = about.get("Package", "")
        if name and "Description" in about and not _PARTS.search(name):
            found[name] = about
    links, tags = set(), defaultdict(list)
    for name, about in found.items():
        named = ",".join(about.get(kind, "") for kind in ("Recommends", "Suggests", "Enhances"))
        targets = {part.split(" ")[0].split(":")[0] for part in re.split(r"[,|]\s*", named)}
        links |= {(name, target) for target in targets & found.keys() - {name}}
        for tag in re.findall(r"[^,\s]+::[^,\s{]+", about.get("Tag", "")):
            tags[tag].append(name)
    documents = {name: (name, about["Description"]) for name, about in found.items()}
    return documents, links, {t: names for t, names in tags.items() if len(names) in _TAGGED}


def ratings(documents: Documents, relevant: Mapping[str, set[str]]) -> list[tuple[str, ...]]:
    """(query, id, title, text, label) of some documents of each query; ``relevant`` by its text."""
    rng = random.Random(7)
    with_word, queries_of = defaultdict(list), defaultdict(list)
    for name, texts in documents.items():
        for word in sorted(_words(" ".join(texts))):
            with_word[word].append(name)
    for query, names in relevant.items():
        for name in names:
            queries_of[name].append(query)

    def some(names: Iterable[str], most: int) -> list[str]:
        ordered = sorted(names)
        return rng.sample(ordered, min(most, len(ordered)))

    rows = []
    for query, names in relevant.items():
        good = some(names, _MOST_RELEVANT)
        near = {n for word in sorted(_words(query)) for n in some(with_word[word], 15)}
        for name in good:
            for other in queries_of[name]:
                near.update(some(relevant[other], 2))
        labels = dict.fromkeys(good, "Exact") | dict.fromkeys(
            some(near - names, _MOST_OTHERS), "None"
        )
        rows += [(query, name, *documents[name], label) for name, label in labels.items()]
    return rows


def rfcs(
    root: Path, n_queries: int = _N_RFC_QUERIES
) -> tuple[Documents, Grades, dict[str, str], dict[str, str]]:
    """Documents, grades of cited ones, queries and their groups; a query of no working group is a
    group of its own."""
    about, cited = {}, {}
    for path in sorted((root / "usr/share/doc/RFC/links").glob("rfc*.json")):
        found = json.loads(path.read_text(encoding="utf-8"))
        abstract = " ".join(re.sub("<[^>]+>", "", found["abstract"] or "").split())
        if abstract and (text := _rfc_text(path)):
            number = int(path.stem.removeprefix("rfc"))
            about[number] = (found["title"].strip(), abstract, found["source"] or "")
            cited[number] = _citations(text, number)
    documents = {n: about[n][:2] for n in about if n in _RFC_DOCUMENTS}
    newer = [n for n in about if n >= _RFC_DOCUMENTS.stop]
    asked = [n for n in newer if len(cited[n].keys() & documents.keys()) >= _LEAST_CITED]
    asked = sorted(random.Random(1).sample(asked, n_queries))
    no_group = ("", "INDEPENDENT", "IETF - NON WORKING GROUP")
    return (
        {f"rfc{n}": texts for n, texts in documents.items()},
        {(f"rfc{n}", f"rfc{d}"): g for n in asked for d, g in cited[n].items() if d in documents},
        {f"rfc{n}": about[n][0] for n in asked},
        {f"rfc{n}": f"rfc{n}" if about[n][2] in no_group else about[n][2] for n in asked},
    )


def _rfc_text(path: Path) -> str:
    """The text beside the facts of an RFC, empty if there is none."""
    packed, plain = path.with_suffix(".txt.gz"), path.with_suffix(".txt")
    if packed.exists():
        return gzip.decompress(packed.read_bytes()).decode("utf-8", "replace")
    return plain.read_text(encoding="utf-8", errors="replace") if plain.exists() else ""


def _citations(text: str, number: int) -> dict[int, int]:
    """Grades of the RFCs in the lists of references of RFC ``number``."""
    heading = re.compile(r"^ *\d*\.?\d*\.? *(Normative )?References *$", re.M | re.I)
    starts = [match.start() for match in heading.finditer(text)]
    if not starts:
        loose = re.finditer(r"^ ?\d*\.?\d*\.? *References?\b", text, re.M)
        starts = [match.start() for match in loose][-1:]
    elif len(starts) > 1 and starts[0] < 0.4 * len(text):  # of the table of contents
        starts = starts[1:]
    lists = text[starts[0] :] if starts else ""
    other = re.search(r"^ *\d*\.?\d*\.? *Informative References", lists, re.M | re.I)
    end = other.start() if other else len(lists)
    grades: dict[int, int] = {}
    for part, grade in ((lists[end:], 1), (lists[:end], 2)):
        grades |= dict.fromkeys(map(int, re.findall(r"\[RFC ?-?(\d{3,4})\]", part)), grade)
    return {n: grade for n, grade in grades.items() if n != number and n not in _RFC_WORDS}


def translations(language: str) -> dict[str, str]:
    """The lines of programs in a language, by the digests of their English descriptions."""
    lines = {}
    for name, digest, line, _ in _translated(language):
        if not _PARTS.search(name):
            lines.setdefault(digest, line)
    return lines


def _translated(language: str) -> Iterator[tuple[str, str, str, str]]:
    """The names of all packages, digests of their English descriptions, and in a language the first
    line and the rest of the description."""
    of_language = "*_i18n_Translation-" + language.replace("_", "%5f") + "*"
    for path in sorted(Path("/var/lib/apt/lists").glob(of_language)):
        text = subprocess.run(
            ["/usr/lib/apt/apt-helper", "cat-file", path],
            check=True, capture_output=True, text=True,
        ).stdout  # fmt: skip
        yield from re.findall(
            r"^Package: (\S+)\nDescription-md5: (\S+)\nDescription-\S+: (.*)\n((?: .*\n)*)",
            text,
            re.M,
        )


def descriptions() -> tuple[Documents, Pairs, dict[str, str], set[str]]:
    """Long descriptions, each different; the queries, first lines that at most three of them have,
    under the name of one; and which of these are for training."""
    documents, of_text, of_line = {}, {}, defaultdict(list)
    for name, _, line, rest in _translated("en"):
        text = " ".join(re.sub(r"^ \.?", "", rest, flags=re.M).split())
        if name not in documents and text not in of_text and len(text.split()) >= _LEAST_WORDS:
            documents[name], of_text[text] = ("", text), name
            of_line[line.strip()].append(name)
    relevant = {names[0]: names for names in of_line.values() if len(names) <= _MOST_ALIKE}
    queries = {names[0]: line for line, names in of_line.items() if names[0] in relevant}
    judged = {(query, name) for query, names in relevant.items() for name in names}
    tested = random.Random(0).sample(sorted(queries), min(_N_TEST_LINES, len(queries)))
    return documents, judged, queries, queries.keys() - set(tested)


def write_mates(folder: Path, language: str) -> None:
    """Parallel lines, shuffled: ``train`` and ``test``, in the language and in English."""
    sides = {code: translations(code) for code in (language, "en")}
    both = sorted(sides[language].keys() & sides["en"].keys())
    random.Random(0).shuffle(both)
    write_pairs(folder, sides, both[_N_TEST_PAIRS:], both[:_N_TEST_PAIRS])


def write_verses(root: Path, folder: Path) -> None:
    """Parallel verses: ``test`` has some of chapters of which ``train`` has none."""
    modules = {"es": "spaRV1909eb", "en": "engWEB2015eb"}
    sides = {code: verses(root, module) for code, module in modules.items()}
    both = sorted(sides["es"].keys() & sides["en"].keys())
    chapters = sorted({key.split(":")[0] for key in both})
    tested = set(random.Random(0).sample(chapters, _N_TEST_CHAPTERS))
    test = [key for key in both if key.split(":")[0] in tested]
    write_pairs(folder, sides, sorted(set(both) - set(test)), test)


def verses(root: Path, module: str) -> dict[str, str]:
    """The text of each verse of five words or more, by book, chapter and verse."""
    found, path = {}, str(root / "usr/share/sword")
    for books in ("Gen-Job", "Ps-Ps", "Prov-Mal", "Matt-Rev"):
        text = subprocess.run(
            ["diatheke", "-b", module, "-f", "plain", "-k", books],
            check=True, capture_output=True, env={**os.environ, "SWORD_PATH": path},
        ).stdout.decode("utf-8", "replace")  # fmt: skip
        for key, verse in re.findall(
            r"^((?:I+ )?[A-Z][A-Za-z ]+ \d+:\d+): (.*(?:\n(?!(?:I+ )?[A-Z][A-Za-z ]+ \d+:).*)*)",
            text,
            re.M,
        ):
            words = re.sub(r"<[^>]*>|\(\w+eb\)", " ", verse).split()
            if len(words) >= 5:
                found[key] = " ".join(words)
    return found


def write_pairs(
    folder: Path, sides: Mapping[str, Mapping[str, str]], train: Sequence[str], test: Sequence[str]
) -> None:
    """Texts of two languages by the same keys, line by line."""
    if not train:
        print(f"{folder}: left out, {len(test)} texts are there in both languages")
        return
    folder.mkdir(parents=True, exist_ok=True)
    for code, texts in sides.items():
        _write(folder / f"test.{code}", (texts[key] for key in test))
        _write(folder / f"train.{code}", (texts[key] for key in train))
    print(f"{folder}: {len(test) + len(train):,} pairs of texts")


def _words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text.lower()))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--root", type=Path, default=Path("/"), help="where packages lie")
    parser.add_argument("--out", type=Path, required=True, help="folder of the collections")
    arguments = parser.parse_args()
    for name in DICTIONARIES:
        write(arguments.out / name, *dictionary(arguments.root, name), {})
    write(arguments.out / "manuals", *manuals(arguments.root), {})
    documents, links, tags = packages()
    write(arguments.out / "packages", documents, links, {})
    queries = {tag: re.sub(r"[:-]+", " ", tag.split("::")[1]) for tag in tags}
    judged = {(tag, name) for tag, names in tags.items() for name in names}
    write(arguments.out / "tags", documents, judged, queries)
    write(arguments.out / "descriptions", *descriptions())
    for name, code in LANGUAGES.items():
        write_mates(arguments.out / name, code)
    if (arguments.root / "usr/share/sword/modules").is_dir():
        write_verses(arguments.root, arguments.out / "verses")
    if (arguments.root / "usr/share/doc/RFC/links").is_dir():
        *collection, groups = rfcs(arguments.root)
        write(arguments.out / "rfcs", *collection)
        _write(arguments.out / "groups.tsv", map("\t".join, groups.items()))
    else:
        print(f"{arguments.out / 'rfcs'}: left out, the packages doc-rfc-* are not there")
    relevant = defaultdict(set)  # several tags may have one text
    for tag, names in tags.items():
        relevant[queries[tag]].update(names)
    with (arguments.out / "ratings.csv").open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file)
        table.writerow(("query", "product_id", "title", "text", "label"))
        table.writerows(ratings(documents, relevant))


if __name__ == "__main__":
    main()
