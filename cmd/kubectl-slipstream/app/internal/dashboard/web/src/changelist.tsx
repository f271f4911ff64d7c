// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// A list of Changes: who changed what, when, and in which commit.
import type { ComponentChildren, JSX } from "preact";
import { Icon } from "./icons";
import { type Column, List } from "./list";
import { Ago } from "./parts";
import { go, to } from "./routes";
import { cell, keyOf, type Row } from "./store";
import { number } from "./time";

// ChangeRow is a row of the table of Changes by the names of its columns.
export interface ChangeRow {
  row: Row;
  key: string;
  who: string;
  kind: string;
  object: string;
  did: string;
  fields: string;
  commit: string;
  manager: string;
  bypass: boolean;
  reason: string;
  // first is the number of objects that this row stands for: they had no file yet when a comparison found them.
  first?: number;
}

// known are the rows that were read before: a list of thousands is put together again for each change that arrives.
const known = new WeakMap<Row, ChangeRow>();

export function changeRow(of: { columns: string[] }, row: Row): ChangeRow {
  let read = known.get(row);
  if (!read) known.set(row, (read = readRow(of, row)));
  return read;
}

function readRow(of: { columns: string[] }, row: Row): ChangeRow {
  const what = cell(of, row, "What");
  const slash = what.indexOf("/");
  const manager = cell(of, row, "Managed By");
  return {
    row,
    key: keyOf(row),
    who: cell(of, row, "Who"),
    kind: what.slice(0, slash),
    object: what.slice(slash + 1),
    did: cell(of, row, "Did"),
    fields: cell(of, row, "Fields"),
    commit: cell(of, row, "Commit"),
    manager: manager.replace(/ !$/, ""),
    bypass: manager.endsWith(" !"),
    reason: cell(of, row, "Reason"),
  };
}

// leastFirst is the number of objects from which on they share a row.
const leastFirst = 3;

// folded puts changes next to each other into one row if a comparison found their objects for the first time and no user is known, as when
// a cluster begins to be mirrored.
export function folded(changes: ChangeRow[]): ChangeRow[] {
  const isFirst = ({ did, who, fields }: ChangeRow): boolean => did === "Compared" && fields === "" && (who === "" || who.startsWith("("));
  const rows: ChangeRow[] = [];
  for (let i = 0; i < changes.length; ) {
    let end = i;
    while (end < changes.length && isFirst(changes[end]!)) end++;
    if (end - i >= leastFirst) {
      rows.push({ ...changes[i]!, first: end - i });
      i = end;
    } else {
      rows.push(changes[i++]!);
    }
  }
  return rows;
}

export const newestFirst = (a: Row, b: Row): number => (a.at !== b.at ? (a.at < b.at ? 1 : -1) : a.name < b.name ? -1 : a.name > b.name ? 1 : 0);

// merged puts the newest changes in front of older ones, which are in order and may contain some of them. It costs little even with thousands.
export function merged(newest: ChangeRow[], older: ChangeRow[]): ChangeRow[] {
  const first = [...newest].sort((a, b) => newestFirst(a.row, b.row));
  const isNew = new Set(first.map((each) => each.key));
  const rest = older.filter((each) => !isNew.has(each.key));
  const rows: ChangeRow[] = [];
  let at = 0;
  for (const each of first) {
    while (at < rest.length && newestFirst(rest[at]!.row, each.row) < 0) rows.push(rest[at++]!);
    rows.push(each);
  }
  return rows.concat(rest.slice(at));
}

const open = ({ row, first }: ChangeRow): string => (first ? to(["history"], { namespace: row.namespace }) : changeAddress(row));

export const changeAddress = (row: Row): string => to(["changes", row.namespace, row.name]);

const verbs: Record<string, string> = { Create: "created", Update: "updated", Delete: "deleted", Compared: "compared" };

export function Who({ change }: { change: ChangeRow }): JSX.Element {
  return (
    <span class="who" title={change.who}>
      {shortUser(change.who)}
    </span>
  );
}

// Fields shows the path of a field. Its end says most, so a long path is cut at the beginning.
function Fields({ text }: { text: string }): JSX.Element {
  return (
    <code class="fields" title={text}>
      <bdi>{text}</bdi>
    </code>
  );
}

// shortUser leaves out what the names of all ServiceAccounts begin with.
export function shortUser(user: string): string {
  return user.replace(/^system:serviceaccount:([^:]+):/, "$1/") || "unknown";
}

export function Did({ of }: { of: string }): JSX.Element {
  return (
    <span class={`did ${of.toLowerCase()}`} title={of === "Compared" ? "A comparison of the cluster with the branch found the difference" : ""}>
      {verbs[of] ?? of}
    </span>
  );
}

function columns(namespaces: boolean): Column<ChangeRow>[] {
  return [
    { title: "When", width: "56px", cell: (c) => <Ago time={c.row.at} />, narrow: 1, end: true },
    { title: "Who", width: "minmax(120px, 1fr)", cell: (c) => (c.first ? <span class="dim">Slipstream</span> : <Who change={c} />), from: 560 },
    {
      title: "What",
      width: "minmax(220px, 2.6fr)",
      narrow: 1,
      cell: (c) => (
        <span class="object">
          <a href={open(c)} tabIndex={-1}>
            {!c.first && <span class="kind">{c.kind}/</span>}
            {c.first ? `${number(c.first)} objects compared at the start` : c.object}
          </a>
          {c.bypass && <Bypass manager={c.manager} />}
        </span>
      ),
    },
    { title: "Did", width: "76px", cell: (c) => <Did of={c.did} />, from: 640 },
    { title: "Fields", width: "minmax(120px, 2fr)", cell: (c) => <Fields text={c.fields} />, from: 860 },
    ...(namespaces ? [{ title: "Namespace", width: "minmax(84px, 0.8fr)", cell: (c: ChangeRow) => (c.first ? "" : c.row.namespace), from: 760 }] : []),
    { title: "Reason", width: "minmax(80px, 1fr)", cell: (c) => c.reason, from: 1300 },
    { title: "Commit", width: "76px", cell: (c) => !c.first && <code>{c.commit}</code>, from: 720 },
    { title: "Summary", width: "1fr", narrow: 2, from: Infinity, cell: (c) => (c.first ? "Slipstream · compared" : `${shortUser(c.who)} · ${verbs[c.did] ?? c.did} · ${c.row.namespace}`) },
  ];
}

const byNamespace = columns(true);
const inNamespace = columns(false);

function Bypass({ manager }: { manager: string }): JSX.Element {
  return (
    <span class="tag warning" title={`${manager} manages this object, and something else changed it`}>
      <Icon of="warning" /> bypassed
    </span>
  );
}

export function ChangeList(props: { label: string; items: ChangeRow[]; namespaces: boolean; view?: string; end?: () => void; empty: ComponentChildren }): JSX.Element {
  return (
    <List
      label={props.label}
      items={props.items}
      columns={props.namespaces ? byNamespace : inNamespace}
      keyOf={(c) => c.key}
      versionOf={(c) => `${c.row.version} ${c.first ?? ""}`}
      open={(c) => go(open(c))}
      view={props.view ?? ""}
      {...(props.end ? { end: props.end } : {})}
      empty={props.empty}
    />
  );
}
