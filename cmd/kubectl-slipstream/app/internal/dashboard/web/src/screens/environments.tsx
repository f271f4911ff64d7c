// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// All environments, by catalog.
import type { JSX } from "preact";
import { useMemo, useState } from "preact/hooks";
import type { Target } from "../actions";
import { type Batch, batch } from "../batch";
import { Icon } from "../icons";
import { type Column, List } from "../list";
import { Aged, Empty, State, Tables, scope, useTitle } from "../parts";
import { addressOf, go, route, setQuery } from "../routes";
import { environmentKindOf, nouns, severity, type StateKind } from "../states";
import { cell, keyOf, type Row, type Table, table } from "../store";
import { count } from "../time";
import { pressOnEnvironment } from "./inbox";
import { SavedFilters } from "../savedfilters";

export interface EnvironmentRow {
  row: Row;
  kind: StateKind;
  state: string;
  catalog: string;
  type: string;
  auto: string;
  revision: string;
  offered: string;
  ready: string;
  waits: string;
  last: string;
  target: string;
}

export function environmentRow(of: Table, row: Row): EnvironmentRow {
  return {
    row,
    kind: environmentKindOf(of, row),
    state: cell(of, row, "State"),
    catalog: cell(of, row, "Catalog"),
    type: cell(of, row, "Type"),
    auto: cell(of, row, "Auto"),
    revision: cell(of, row, "Revision"),
    offered: cell(of, row, "Offered"),
    ready: cell(of, row, "Ready"),
    waits: cell(of, row, "Waits-For"),
    last: cell(of, row, "Last-Sync"),
    target: cell(of, row, "Namespace"),
  };
}

// catalogOf returns the catalog of an environment with its namespace.
export function catalogOf(of: EnvironmentRow): string {
  return of.catalog.includes("/") ? of.catalog : `${of.row.namespace}/${of.catalog}`;
}

export const environmentColumns: Column<EnvironmentRow>[] = [
  {
    title: "Name",
    width: "minmax(150px, 1.6fr)",
    narrow: 1,
    cell: (e) => (
      <span class="object">
        <a href={addressOf("environments", e.row)} tabIndex={-1}>
          <span class="kind">{e.row.namespace}/</span>
          {e.row.name}
        </a>
        {e.type === "Branch" && <span class="tag">branch</span>}
      </span>
    ),
  },
  { title: "State", width: "minmax(200px, 3fr)", narrow: 2, cell: (e) => <State kind={e.kind} text={e.state} /> },
  { title: "Revision", width: "104px", from: 620, narrow: 1, cell: (e) => <Revisions applied={e.revision} offered={e.offered} /> },
  { title: "Ready", width: "56px", from: 860, cell: (e) => e.ready },
  { title: "Auto", width: "64px", from: 760, cell: (e) => e.auto },
  { title: "Waits for", width: "112px", from: 940, cell: (e) => e.waits },
  { title: "Namespace", width: "minmax(110px, 1fr)", from: 1080, cell: (e) => e.target },
  { title: "Last sync", width: "80px", from: 1000, end: true, cell: (e) => <Aged text={e.last} received={e.row.received} /> },
];

export function Revisions({ applied, offered }: { applied: string; offered: string }): JSX.Element {
  if (offered === "" || offered === "0" || applied === offered) return <code>r{applied || "0"}</code>;
  return (
    <code>
      r{applied} → r{offered}
    </code>
  );
}

// matches reports whether all words of a filter are in an environment.
function matches(of: EnvironmentRow, words: string[]): boolean {
  const text = `${keyOf(of.row)} ${of.catalog} ${of.state} ${of.target} ${of.type} ${Object.entries(of.row.labels ?? {}).map(([k, v]) => `${k}=${v}`)}`.toLowerCase();
  return words.every((word) => text.includes(word));
}

export function EnvironmentsScreen(): JSX.Element {
  useTitle("Environments");
  const environments = table("environments").value;
  const { q = "", state = "", by = "catalog" } = route.value.query;
  const rows = useMemo(() => [...environments.rows.values()].map((row) => environmentRow(environments, row)), [environments]);
  const shown = useMemo(() => {
    const words = q.toLowerCase().split(/\s+/).filter(Boolean);
    return rows.filter((each) => (state === "" || each.kind === state) && matches(each, words)).sort(order(by));
  }, [rows, q, state, by]);
  const chosen = useChosen(rows);
  const press = (key: string, e: EnvironmentRow) => {
    if (key === " ") chosen.toggle(e);
    else if (!chosen.press(key)) return pressOnEnvironment(key, targetOf(e), addressOf("environments", e.row));
    return true;
  };
  const columns = useMemo(() => [chosen.column, ...environmentColumns], [chosen.column]);
  return (
    <>
      <div class="bar-row">
        <h1>Environments</h1>
        <div class="filter">
          <Icon of="search" />
          <input type="search" data-filter placeholder="Filter by name, catalog, state, label" aria-label="Filter environments" value={q} onInput={(e) => setQuery({ q: e.currentTarget.value })} />
        </div>
        <label class="inline">
          Group by
          <select value={by} onChange={(e) => setQuery({ by: e.currentTarget.value })}>
            <option value="catalog">catalog</option>
            <option value="namespace">namespace</option>
            <option value="state">state</option>
            <option value="none">nothing</option>
          </select>
        </label>
        <SavedFilters />
      </div>
      <div class="chosen-row" aria-live="polite">
        {(q !== "" || state !== "") && (
          <span class="hint">
            {count(shown.length, "environment")} of {rows.length}
            {state !== "" && `, ${nouns[state as StateKind] ?? state}`}
            <button type="button" class="quiet small" onClick={() => setQuery({ q: "", state: "" })}>
              Clear the filter
            </button>
          </span>
        )}
        <ChosenBar of={chosen} />
      </div>
      <Tables of={[environments]} what="environments">
        {() => (
          <List
            label="Environments"
            columns={columns}
            items={shown}
            view={`${q} ${state} ${by}`}
            keyOf={(e) => keyOf(e.row)}
            versionOf={(e) => e.row.version}
            {...(by === "none" ? {} : { group: grouping[by] ?? grouping.catalog! })}
            open={(e) => go(addressOf("environments", e.row))}
            press={press}
            empty={rows.length === 0 ? <None /> : <Empty title="No environment matches the filter" />}
          />
        )}
      </Tables>
    </>
  );
}

const targetOf = ({ row }: EnvironmentRow): Target => ({ resource: "environments", namespace: row.namespace, name: row.name });

// Chosen are the environments that the user has selected.
interface Chosen {
  rows: EnvironmentRow[];
  column: Column<EnvironmentRow>;
  toggle: (e: EnvironmentRow) => void;
  clear: () => void;
  act: (action: Batch["action"], options?: Batch["options"]) => void;
  // press does what a key means for them, and reports whether there was anything to do.
  press: (key: string) => boolean;
}

function useChosen(all: EnvironmentRow[]): Chosen {
  const [keys, setKeys] = useState<ReadonlySet<string>>(new Set());
  const rows = all.filter((e) => keys.has(keyOf(e.row)));
  const clear = () => setKeys(new Set());
  const toggle = (e: EnvironmentRow) =>
    setKeys((old) => {
      const changed = new Set(old);
      if (!changed.delete(keyOf(e.row))) changed.add(keyOf(e.row));
      return changed;
    });
  const act: Chosen["act"] = (action, options = {}) => (batch.value = { action, options, targets: rows.map(targetOf), done: clear });
  const press = (key: string) => {
    const action = ({ s: "sync", c: "sync", x: "dismiss" } as const)[key];
    if (!action || rows.length === 0) return false;
    act(action, key === "s" ? { action: "catalog" } : key === "c" ? { action: "cluster" } : {});
    return true;
  };
  const column = useMemo(
    (): Column<EnvironmentRow> => ({
      title: "Selected",
      untitled: true,
      width: "18px",
      cell: (e) => <input type="checkbox" tabIndex={-1} aria-label={`Select ${keyOf(e.row)}`} checked={keys.has(keyOf(e.row))} onChange={() => toggle(e)} />,
    }),
    [keys],
  );
  return { rows, column, toggle, clear, act, press };
}

function ChosenBar({ of }: { of: Chosen }): JSX.Element | null {
  if (of.rows.length === 0) return null;
  return (
    <span class="buttons" role="group" aria-label="Selected environments">
      <button type="button" class="primary small" onClick={() => of.act("sync")}>
        Take changes of {count(of.rows.length, "environment")}
      </button>
      <button type="button" class="small" onClick={() => of.act("dismiss")}>
        Dismiss
      </button>
      <button type="button" class="quiet small" onClick={of.clear}>
        Clear the selection
      </button>
    </span>
  );
}

const grouping: Record<string, (of: EnvironmentRow) => string> = {
  catalog: (e) => `Catalog ${catalogOf(e)}`,
  namespace: (e) => `Namespace ${e.row.namespace}`,
  state: (e) => nouns[e.kind],
};

const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);

function order(by: string): (a: EnvironmentRow, b: EnvironmentRow) => number {
  const worst = (a: EnvironmentRow, b: EnvironmentRow) => severity(a.kind) - severity(b.kind) || compare(keyOf(a.row), keyOf(b.row));
  if (by === "none" || by === "state") return worst;
  const group = grouping[by] ?? grouping.catalog!;
  return (a, b) => compare(group(a), group(b)) || worst(a, b);
}

function None(): JSX.Element {
  return (
    <Empty title={`There are no environments${scope()}`} command="kubectl slipstream environment --help">
      An environment is a namespace that is built from a catalog. This command writes the manifest of the first one.
    </Empty>
  );
}
