// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// The life of one object: a slider over its Changes, with what each did, and the way back.
import type { JSX } from "preact";
import { useEffect, useMemo, useState } from "preact/hooks";
import { useActions } from "../actions";
import { ChangeActions } from "../changeactions";
import { newestFirst } from "../changelist";
import { DiffView } from "../diffview";
import { useListing } from "../listing";
import { Output, useRun } from "../output";
import { Ago, Empty, Notice, Skeleton, useLoaded, useTitle } from "../parts";
import { to } from "../routes";
import { cell, type Row, table } from "../store";
import { count, exact } from "../time";
import type { Change, ChangeContents } from "../types";
import { ChangeFacts, Contents, readChange } from "./change";

// mostTicks is the number of Changes up to which the slider has a mark for each.
const mostTicks = 60;

export function LifeScreen({ namespace, resource, name }: { namespace: string; resource: string; name: string }): JSX.Element {
  useTitle(`${resource}/${name}`);
  const live = table("changes").value;
  const latest = useMemo(() => [...live.rows.values()].filter((row) => row.namespace === namespace && cell(live, row, "What").endsWith(`/${name}`)).length, [live]);
  const { value, error } = useListing({ resource: "changes", namespace, fields: { "object.resource": resource, "object.name": name }, limit: 500 }, String(latest));
  const rows = useMemo(() => [...(value?.rows ?? [])].sort(newestFirst).reverse(), [value]);
  return (
    <>
      <nav class="crumbs" aria-label="Path">
        <a href={to(["history"])}>History</a> / <a href={to(["history"], { namespace })}>{namespace}</a>
      </nav>
      <h1>
        <span class="kind">{resource}/</span>
        {name}
      </h1>
      {error !== "" && <Notice kind="failed">{error}</Notice>}
      {!value && error === "" && <Skeleton label="Loading the changes of the object" />}
      {value && rows.length === 0 && (
        <Empty title="No changes of this object" command={`kubectl slipstream log ${resource}/${name} -n ${namespace} --since 0`}>
          None is kept, or you may not see them.
        </Empty>
      )}
      {value && rows.length > 0 && <Life {...{ namespace, resource, name, rows }} columns={value.columns} complete={value.continue === ""} />}
    </>
  );
}

interface LifeProps {
  namespace: string;
  resource: string;
  name: string;
  // rows are the Changes, the oldest first.
  rows: Row[];
  columns: string[];
  complete: boolean;
}

function Life(props: LifeProps): JSX.Element {
  const { namespace, rows } = props;
  const [chosen, setChosen] = useState("");
  const [view, setView] = useState<"change" | "now" | "blame">("change");
  const found = rows.findIndex((row) => row.name === chosen);
  const at = found < 0 ? rows.length - 1 : found;
  const row = rows[at]!;
  const settled = useSettled(row.name);
  const { value, error } = useLoaded(`${namespace}#${settled}`, (stop) => readChange(namespace, settled, stop));
  const target = { resource: "changes", namespace, name: row.name };
  const actions = useActions(target, "");
  const choose = (i: number) => setChosen(rows[Math.min(Math.max(i, 0), rows.length - 1)]!.name);
  return (
    <>
      <div class="life">
        <div class="life-head">
          <button type="button" class="small" disabled={at === 0} onClick={() => choose(at - 1)}>
            Older
          </button>
          <input type="range" min={0} max={rows.length - 1} step={1} value={at} disabled={rows.length === 1} list="life-changes" aria-label="Change" aria-valuetext={`${at + 1} of ${rows.length}, ${exact(row.at)}, ${cell(props, row, "Who")}`} onInput={(e) => choose(Number(e.currentTarget.value))} />
          <button type="button" class="small" disabled={at === rows.length - 1} onClick={() => choose(at + 1)}>
            Newer
          </button>
        </div>
        {rows.length <= mostTicks && (
          <datalist id="life-changes">
            {rows.map((each, i) => (
              <option key={each.name} value={i} />
            ))}
          </datalist>
        )}
        <div class="life-ends">
          <span>
            {props.complete ? "" : "at least "}
            <Ago time={rows[0]!.at} /> ago
          </span>
          <strong aria-live="polite">
            {at + 1} of {count(rows.length, "change")}
          </strong>
          <span>
            <Ago time={rows[rows.length - 1]!.at} /> ago
          </span>
        </div>
      </div>
      <div class="title-row">
        <div class="segments" role="group" aria-label="View">
          <Segment of="change" title="This change" {...{ view, setView }} />
          <Segment of="now" title="Compared with the newest" {...{ view, setView }} />
          <Segment of="blame" title="Blame" {...{ view, setView }} />
        </div>
        <div class="buttons">
          <ChangeActions target={target} actions={actions} operation={cell(props, row, "Did")} />
        </div>
      </div>
      {view === "blame" && value && <Blame {...props} object={value.change.spec.object} />}
      {error !== "" && <Notice kind="failed">{error}</Notice>}
      {!value && error === "" && <Skeleton label="Loading the change" />}
      {view !== "blame" && value && <ChangeFacts change={value.change} />}
      {view === "change" && value && <Contents of={value} />}
      {view === "now" && value && <WithNewest {...props} then={value} />}
    </>
  );
}

function Segment<T extends string>(props: { of: T; title: string; view: string; setView: (view: T) => void }): JSX.Element {
  return (
    <button type="button" aria-pressed={props.view === props.of} onClick={() => props.setView(props.of)}>
      {props.title}
    </button>
  );
}

// useSettled returns a value once it has not changed for a moment, so that a moving slider does not load each change.
function useSettled(value: string): string {
  const [settled, setSettled] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(value), 120);
    return () => clearTimeout(timer);
  }, [value]);
  return settled;
}

function WithNewest({ namespace, rows, then }: LifeProps & { then: ChangeContents }): JSX.Element {
  const newest = rows[rows.length - 1]!.name;
  const { value, error } = useLoaded(`${namespace}/${newest}`, (stop) => readChange(namespace, newest, stop));
  if (error !== "") return <Notice kind="failed">{error}</Notice>;
  if (!value) return <Skeleton label="Loading the newest change" />;
  const problem = then.error || value.error;
  if (problem) return <Notice kind="warning">The contents cannot be read: {problem}</Notice>;
  return <DiffView before={then.after} after={value.after} titles={["After this change", "After the newest change"]} />;
}

function Blame({ object: of, rows }: LifeProps & { object: Change["spec"]["object"] }): JSX.Element {
  const group = of.apiVersion.includes("/") ? `.${of.apiVersion.split("/")[0]}` : "";
  const object = `${of.resource}${group}/${of.name}`;
  const result = useRun(`${object} ${rows.length}`, { target: { resource: "objects", namespace: of.namespace ?? "", name: "" }, action: "blame", options: { object }, preview: false });
  return (
    <>
      {result.exit === undefined && <Skeleton label="Loading the lines" />}
      <Output result={result} label="Each line with its last change" />
      {result.error !== "" && <Notice kind="failed">{result.error}</Notice>}
    </>
  );
}
