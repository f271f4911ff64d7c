// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Conflicts of an environment, field by field, and the decision about each.
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { ask, type Target } from "../actions";
import { type Result, useRun } from "../output";
import { Section } from "../parts";
import { count } from "../time";
import type { Conflict } from "../types";

type Side = "ours" | "theirs";

interface Both {
  here: string;
  catalog: string;
}

// sides reads both values of each field from what resolve prints: a line with object and field, and a line for each side.
export function sides(result: Result): Map<string, Both> {
  const all = new Map<string, Both>();
  let current: Both | undefined;
  for (const { text } of result.output) {
    const side = /^ {2}(here|catalog) +(.*)$/.exec(text);
    if (!side) all.set(text.trim(), (current = { here: "", catalog: "" }));
    else if (current && side[1] === "here") current.here = side[2]!.replace(/ {2}\([^)]*\)$/, "");
    else if (current) current.catalog = side[2]!;
  }
  return all;
}

interface ConflictsProps {
  target: Target;
  conflicts: Conflict[];
  // refused is why the user may not decide.
  refused: string;
  version: string;
  done: () => void;
}

// Conflicts is the part of an environment's screen in which a user decides.
export function Conflicts(props: ConflictsProps): JSX.Element {
  const fields = props.conflicts.reduce((sum, each) => sum + each.fields.length, 0);
  return (
    <Section title="Conflicts" count={fields}>
      <Decisions {...props} />
    </Section>
  );
}

// Decisions shows both sides of each field, and takes the decisions to a dialog with their preview.
export function Decisions({ target, conflicts, refused, version, done }: ConflictsProps): JSX.Element {
  const [choices, setChoices] = useState<Record<string, Side>>({});
  const values = sides(useRun(`${target.namespace}/${target.name}#${version}`, { target, action: "resolve", options: {}, preview: true }));
  const fields = conflicts.flatMap((each) => each.fields.map((field) => ({ ...field, object: `${each.kind}/${each.name}`, key: `${each.kind.toLowerCase()}/${each.name}${field.field}` })));
  const decided = fields.filter((each) => choices[each.key]);
  const all = (side: Side) => setChoices(Object.fromEntries(fields.map((each) => [each.key, side])));
  const resolve = () => ask(target, "resolve", { choices: decided.map((each) => ({ field: each.key, take: choices[each.key] })) }, done);
  return (
    <>
      <p class="hint">These fields were changed here and in the catalog. Ours is the value of this environment, theirs is that of the catalog.</p>
      <ul class="conflicts">
        {fields.map((each) => (
          <li key={each.key}>
            <Field name={each.key} object={each.object} field={each.field} managers={each.managers ?? []} both={find(values, each.object, each.field)} chosen={choices[each.key]} choose={(side) => setChoices({ ...choices, [each.key]: side })} />
          </li>
        ))}
      </ul>
      <div class="buttons decisions">
        <button type="button" disabled={refused !== ""} title={refused} onClick={() => all("ours")}>
          Keep all ours
        </button>
        <button type="button" disabled={refused !== ""} title={refused} onClick={() => all("theirs")}>
          Take all theirs
        </button>
        <button type="button" class="primary" disabled={refused !== "" || decided.length === 0} title={refused} onClick={resolve}>
          Resolve {decided.length > 0 ? count(decided.length, "field") : ""}
        </button>
      </div>
    </>
  );
}

const find = (values: Map<string, Both>, object: string, field: string): Both | undefined =>
  values.get(`${object} ${field}`) ?? [...values].find(([key]) => key.toLowerCase() === `${object} ${field}`.toLowerCase())?.[1];

function Field(props: { name: string; object: string; field: string; managers: string[]; both: Both | undefined; chosen: Side | undefined; choose: (side: Side) => void }): JSX.Element {
  const choice = (side: Side, title: string, value: string | undefined, by: string) => (
    <label class={`side ${props.chosen === side ? "chosen" : ""}`}>
      <input type="radio" name={props.name} checked={props.chosen === side} onChange={() => props.choose(side)} />
      <span class="side-title">
        {title} <span class="dim">{by}</span>
      </span>
      <code>{value ?? "…"}</code>
    </label>
  );
  return (
    <fieldset>
      <legend>
        <strong>{props.object}</strong> <code>{props.field}</code>
      </legend>
      <div class="sides">
        {choice("ours", "Ours", props.both?.here, props.managers.join(", "))}
        {choice("theirs", "Theirs", props.both?.catalog, "catalog")}
      </div>
    </fieldset>
  );
}
