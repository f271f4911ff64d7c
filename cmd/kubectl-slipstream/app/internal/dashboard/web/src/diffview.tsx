// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Two texts side by side, or below each other on a narrow screen.
import type { JSX } from "preact";
import { useEffect, useMemo, useState } from "preact/hooks";
import { type DiffLine, diffLines, diffSteps, middle } from "./diff";
import { Empty, Skeleton, useMedia } from "./parts";
import { count, number } from "./time";

// context is the number of lines that are shown around a change.
const context = 3;

// moreLines is how many lines a click shows of a run without a change, and mostLines how many are shown at first in all.
const moreLines = 200;
const mostLines = 600;

// mostCharacters is the length of texts that are compared at once. Longer ones are compared in steps, so that the page stays responsive.
const mostCharacters = 200_000;

interface Texts {
  before: string;
  after: string;
  titles: [string, string];
}

export function DiffView(props: Texts): JSX.Element {
  const lines = useDiff(props.before, props.after);
  if (!lines) return <Skeleton label="Comparing the lines" />;
  if (lines.every((each) => each.kind === "same")) return <Empty title="Both are the same" />;
  return <Lines lines={lines} titles={props.titles} />;
}

// useDiff returns the lines of both texts once they are compared.
function useDiff(before: string, after: string): DiffLine[] | undefined {
  const short = before.length + after.length <= mostCharacters;
  const now = useMemo(() => (short ? diffLines(before, after) : undefined), [before, after]);
  const [later, setLater] = useState<{ before: string; after: string; lines: DiffLine[] }>();
  useEffect(() => {
    if (short) return;
    const steps = diffSteps(before, after);
    let timer: ReturnType<typeof setTimeout>;
    const step = () => {
      const { done, value } = steps.next();
      if (done) setLater({ before, after, lines: value });
      else timer = setTimeout(step);
    };
    timer = setTimeout(step);
    return () => clearTimeout(timer);
  }, [before, after]);
  return now ?? (later?.before === before && later.after === after ? later.lines : undefined);
}

function Lines({ lines, titles }: { lines: DiffLine[]; titles: [string, string] }): JSX.Element {
  // opened is how many lines are shown of each run without a change, by its place.
  const [opened, setOpened] = useState<ReadonlyMap<number, number>>(new Map());
  const [most, setMost] = useState(mostLines);
  const narrow = useMedia("(max-width: 760px)");
  const parts = useMemo(() => folded(lines), [lines]);
  const shown = useMemo(() => shownOf(parts, opened, most), [parts, opened, most]);
  const columns = narrow ? 3 : 4;
  return (
    <div class="diff-frame" tabIndex={0} role="region" aria-label={`${titles[0]} and ${titles[1]}`}>
      <table class={`diff ${narrow ? "unified" : ""}`}>
        <caption class="hidden">
          {titles[0]} on the left, {titles[1]} on the right
        </caption>
        <colgroup>
          {(narrow ? ["number", "sign", ""] : ["number", "", "number", ""]).map((kind, i) => (
            <col key={i} class={kind} />
          ))}
        </colgroup>
        {!narrow && <Head titles={titles} />}
        <tbody>
          {shown.rows.map((row) =>
            "rest" in row ? (
              <Fold key={`fold-${row.run}`} columns={columns} text={foldText(row)} open={() => setOpened(new Map(opened).set(row.run, row.open + moreLines))} />
            ) : narrow ? (
              <Unified key={row.at} line={row.line} />
            ) : (
              <Pair key={row.at} line={row.line} />
            ),
          )}
          {shown.left > 0 && <Fold columns={columns} text={`Show ${number(Math.min(mostLines, shown.left))} more lines, ${number(shown.left)} follow`} open={() => setMost(most + mostLines)} />}
        </tbody>
      </table>
    </div>
  );
}

const foldText = ({ rest, open }: { rest: number; open: number }): string =>
  open === 0 && rest <= moreLines ? `${count(rest, "line")} without a change` : `Show ${number(Math.min(moreLines, rest))} more unchanged lines of ${number(rest)}`;

function Fold({ columns, text, open }: { columns: number; text: string; open: () => void }): JSX.Element {
  return (
    <tr class="fold">
      <td colSpan={columns}>
        <button type="button" class="quiet" onClick={open}>
          {text}
        </button>
      </td>
    </tr>
  );
}

// ShownRow is a line, or the button that shows more of the run without a change that begins at line run.
type ShownRow = { at: number; line: DiffLine } | { run: number; rest: number; open: number };

// shownOf returns the rows up to a number of lines, and the number of lines that are left.
function shownOf(parts: Part[], opened: ReadonlyMap<number, number>, most: number): { rows: ShownRow[]; left: number } {
  const rows: ShownRow[] = [];
  let [size, left] = [0, 0];
  for (const part of parts) {
    if ("line" in part) {
      if (size++ < most) rows.push(part);
      else left++;
      continue;
    }
    if (size >= most) {
      left += part.hidden.length;
      continue;
    }
    const open = Math.min(opened.get(part.at) ?? 0, part.hidden.length);
    part.hidden.slice(0, open).forEach((line, i) => rows.push({ at: part.at + i, line }));
    const rest = part.hidden.length - open;
    if (rest > 0) rows.push({ run: part.at, rest, open });
  }
  return { rows, left };
}

function Head({ titles }: { titles: [string, string] }): JSX.Element {
  return (
    <thead>
      <tr>
        <th scope="col" colSpan={2}>
          {titles[0]}
        </th>
        <th scope="col" colSpan={2}>
          {titles[1]}
        </th>
      </tr>
    </thead>
  );
}

type Part = { at: number; line: DiffLine } | { at: number; hidden: DiffLine[] };

// folded hides long runs of equal lines.
function folded(lines: DiffLine[]): Part[] {
  const near = lines.map(() => false);
  lines.forEach((line, i) => {
    if (line.kind === "same") return;
    for (let j = Math.max(0, i - context); j <= Math.min(lines.length - 1, i + context); j++) near[j] = true;
  });
  const parts: Part[] = [];
  lines.forEach((line, i) => {
    const last = parts[parts.length - 1];
    if (near[i]) parts.push({ at: i, line });
    else if (last && "hidden" in last) last.hidden.push(line);
    else parts.push({ at: i, hidden: [line] });
  });
  return parts;
}

function Pair({ line }: { line: DiffLine }): JSX.Element {
  const left = line.kind === "changed" || line.kind === "removed" ? "removed" : line.before === undefined ? "absent" : "";
  const right = line.kind === "changed" || line.kind === "added" ? "added" : line.after === undefined ? "absent" : "";
  return (
    <tr>
      <td class={`number ${left}`}>{line.beforeNumber}</td>
      <td class={left}>
        <Side line={line} side="before" />
      </td>
      <td class={`number ${right}`}>{line.afterNumber}</td>
      <td class={right}>
        <Side line={line} side="after" />
      </td>
    </tr>
  );
}

function Unified({ line }: { line: DiffLine }): JSX.Element {
  if (line.kind === "same") {
    return (
      <tr>
        <td class="number">{line.afterNumber}</td>
        <td class="sign" />
        <td>
          <Side line={line} side="after" />
        </td>
      </tr>
    );
  }
  return (
    <>
      {line.before !== undefined && (
        <tr>
          <td class="number removed">{line.beforeNumber}</td>
          <td class="sign removed">-</td>
          <td class="removed">
            <Side line={line} side="before" />
          </td>
        </tr>
      )}
      {line.after !== undefined && (
        <tr>
          <td class="number added">{line.afterNumber}</td>
          <td class="sign added">+</td>
          <td class="added">
            <Side line={line} side="after" />
          </td>
        </tr>
      )}
    </>
  );
}

// longLine is the length from which on a line is cut, and longEdge how much is then shown beside what differs.
const longLine = 2000;
const longEdge = 200;

// cut shortens a text in the middle of a long line.
function cut(text: string, most: number, keepEnd = false): string {
  if (text.length <= most) return text;
  const left = `… ${number(text.length - most)} more characters …`;
  return keepEnd ? left + text.slice(-most) : text.slice(0, most) + left;
}

// Side is one side of a line, with what differs marked.
function Side({ line, side }: { line: DiffLine; side: "before" | "after" }): JSX.Element | null {
  const text = line[side];
  if (text === undefined) return null;
  if (line.kind !== "changed") {
    const short = cut(text, longLine);
    return <>{line.kind === "removed" ? <del>{short}</del> : line.kind === "added" ? <ins>{short}</ins> : short}</>;
  }
  const parts = middle(line.before ?? "", line.after ?? "");
  const edge = text.length > longLine ? longEdge : longLine;
  const changed = cut(parts[side], longLine);
  return (
    <>
      {cut(parts.start, edge, true)}
      {side === "before" ? <del class="mark">{changed}</del> : <ins class="mark">{changed}</ins>}
      {cut(parts.end, edge)}
    </>
  );
}
