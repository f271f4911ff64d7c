// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// What the page knows of the cluster: the server's tables, as the stream delivers them.
import { type Signal, signal } from "@preact/signals";
import { setHosted } from "./api";

// Row is a row of one of the server's tables, with the time at which it arrived here.
export interface Row {
  namespace: string;
  name: string;
  labels: Record<string, string> | null;
  cells: string[];
  version: string;
  at: string;
  received?: number;
}

export type Phase = "loading" | "ready" | "refused";

// Table is a table of the server. Its rows are replaced, never changed, so that a list can hold on to old ones.
export interface Table {
  phase: Phase;
  // error is why the user may not see the table, or why it is not up to date.
  error: string;
  // lostSince is when the table stopped to be up to date, 0 if it is.
  lostSince: number;
  columns: string[];
  rows: Map<string, Row>;
}

export interface Hello {
  user: string;
  context: string;
  namespace: string;
  note?: string;
  allowChanges: boolean;
  version: string;
  // hosted is set if a proxy in front of the page knows the user.
  hosted?: boolean;
  // logoutURL is where the browser goes to log out at the proxy.
  logoutURL?: string;
  // flags are those of the connection that commands need, such as --context=prod.
  flags?: string;
}

export const streamed = ["environments", "appcatalogs", "gitdestinations", "gitdestinationstatuses", "syncpipelines", "changes"] as const;

export type Resource = (typeof streamed)[number];

const empty = (): Table => ({ phase: "loading", error: "", lostSince: 0, columns: [], rows: new Map() });

const tables = new Map<string, Signal<Table>>(streamed.map((resource) => [resource, signal(empty())]));

// table returns the table of a resource, which changes as the cluster does.
export function table(resource: Resource): Signal<Table> {
  return tables.get(resource)!;
}

export const hello = signal<Hello | null>(null);
export const allowChanges = signal(false);

// connection is the state of the stream. since is when that state began.
export const connection = signal<{ state: "connecting" | "live" | "lost"; since: number; error: string }>({
  state: "connecting",
  since: Date.now(),
  error: "",
});

// now is the time, to the second, for ages.
export const now = signal(Date.now());
setInterval(() => (now.value = Date.now()), 1000);

export const keyOf = (row: { namespace: string; name: string }): string => `${row.namespace}/${row.name}`;

// cell returns a cell of a row by the title of its column.
export function cell(of: { columns: string[] }, row: Row, column: string): string {
  const at = of.columns.indexOf(column);
  return at < 0 ? "" : (row.cells[at] ?? "");
}

// mostChanges is the number of the newest Changes that the page keeps.
const mostChanges = 400;

export type Message =
  | ({ type: "hello" } & Hello)
  | { type: "table"; resource: string; columns: string[]; rows: Row[] | null }
  | { type: "rows"; resource: string; rows: Row[] | null; deleted: [string, string][] | null }
  | { type: "refused" | "lost"; resource: string; error: string }
  | { type: "found"; resource: string }
  | { type: "allow"; allowChanges: boolean }
  | { type: "ping" | "again" };

// receive applies a message of the stream.
export function receive(message: Message): void {
  switch (message.type) {
    case "hello":
      hello.value = message;
      allowChanges.value = message.allowChanges;
      setHosted(message.hosted === true, message.user, message.logoutURL ?? "");
      return;
    case "allow":
      allowChanges.value = message.allowChanges;
      return;
    case "ping":
    case "again":
      return;
  }
  const of = tables.get(message.resource);
  if (of !== undefined) of.value = next(of.value, message);
}

function next(old: Table, message: Exclude<Message, { type: "hello" | "allow" | "ping" | "again" }>): Table {
  switch (message.type) {
    case "table":
      return { phase: "ready", error: "", lostSince: 0, columns: message.columns, rows: put(new Map(), message.rows ?? []) };
    case "refused":
      return { ...empty(), phase: "refused", error: message.error };
    case "lost":
      return { ...old, error: message.error, lostSince: old.lostSince || Date.now() };
    case "found":
      return { ...old, error: "", lostSince: 0 };
    case "rows": {
      for (const [namespace, name] of message.deleted ?? []) old.rows.delete(keyOf({ namespace, name }));
      put(old.rows, message.rows ?? []);
      if (message.resource === "changes") forgetOldest(old.rows);
      return { ...old };
    }
  }
}

function put(rows: Map<string, Row>, changed: Row[]): Map<string, Row> {
  const received = Date.now();
  for (const row of changed) rows.set(keyOf(row), { ...row, received });
  return rows;
}

function forgetOldest(rows: Map<string, Row>): void {
  if (rows.size <= mostChanges) return;
  const oldest = [...rows.entries()].sort(([, a], [, b]) => (a.at < b.at ? -1 : 1)).slice(0, rows.size - mostChanges);
  for (const [key] of oldest) rows.delete(key);
}
