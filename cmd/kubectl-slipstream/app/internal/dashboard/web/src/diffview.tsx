// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Two texts side by side, or below each other on a narrow screen.
import type { JSX } from "preact";
import { useMemo, useState } from "preact/hooks";
import { type DiffLine, diffLines, middle } from "./diff";
import { Empty, useMedia } from "./parts";
import { count } from "./time";

const context = 3;

export function DiffView(props: { before: string; after: string; titles: [string, string] }): JSX.Element {
  const lines = useMemo(() => diffLines(props.before, props.after), [props.before, props.after]);
  const [open, setOpen] = useState<ReadonlySet<number>>(new Set());
  const narrow = useMedia("(max-width: 760px)");
  if (lines.every((each) => each.kind === "same")) return <Empty title="Both are the same" />;
  return (
    <div class="diff-frame" tabIndex={0} role="region" aria-label={`${props.titles[0]} and ${props.titles[1]}`}>
      <table class={`diff ${narrow ? "unified" : ""}`}>
        <caption class="hidden">
          {props.titles[0]} on the left, {props.titles[1]} on the right
        </caption>
        <colgroup>
          {(narrow ? ["number", "sign", ""] : ["number", "", "number", ""]).map((kind, i) => (
            <col key={i} class={kind} />
          ))}
        </colgroup>
        {!narrow && <Head titles={props.titles} />}
        <tbody>
          {folded(lines).map((part) =>
            "hidden" in part && !open.has(part.at) ? (
              <tr key={`fold-${part.at}`} class="fold">
                <td colSpan={narrow ? 3 : 4}>
                  <button type="button" class="quiet" onClick={() => setOpen(new Set([...open, part.at]))}>
                    {count(part.hidden.length, "line")} without a change
                  </button>
                </td>
              </tr>
            ) : (
              ("hidden" in part ? part.hidden : [part.line]).map((line, i) => (narrow ? <Unified key={`${part.at}-${i}`} line={line} /> : <Pair key={`${part.at}-${i}`} line={line} />))
            ),
          )}
        </tbody>
      </table>
    </div>
  );
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
        <td>{line.after}</td>
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

// Side is one side of a line, with what differs marked.
function Side({ line, side }: { line: DiffLine; side: "before" | "after" }): JSX.Element {
  const text = line[side] ?? "";
  if (line.kind !== "changed") return <>{line.kind === "removed" ? <del>{text}</del> : line.kind === "added" ? <ins>{text}</ins> : text}</>;
  const parts = middle(line.before ?? "", line.after ?? "");
  const changed = parts[side];
  return (
    <>
      {parts.start}
      {side === "before" ? <del class="mark">{changed}</del> : <ins class="mark">{changed}</ins>}
      {parts.end}
    </>
  );
}
