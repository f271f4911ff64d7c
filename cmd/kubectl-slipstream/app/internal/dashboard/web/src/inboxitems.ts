// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// What waits for the user: conflicts, failures and prompts, the worst first.
import { computed } from "@preact/signals";
import type { Target } from "./actions";
import { addressOf, to } from "./routes";
import { catalogKind, destinationKind, environmentKind, pipelineKind, severity, type StateKind } from "./states";
import { cell, keyOf, type Row, type Table, table } from "./store";

export interface InboxItem {
  kind: StateKind;
  state: string;
  // what is the kind of the object, in words.
  what: string;
  detail: string;
  target: Target;
  address: string;
  row: Row;
}

// urgent are what an environment waits for that only a user can give.
const urgent = new Set(["you", "permission"]);

function environmentItems(of: Table): InboxItem[] {
  return [...of.rows.values()].flatMap((row) => {
    const state = cell(of, row, "State");
    const kind = environmentKind(state);
    if (kind !== "conflict" && kind !== "failed" && !(kind === "waiting" && urgent.has(cell(of, row, "Waits-For")))) return [];
    const [revision, offered] = [cell(of, row, "Revision"), cell(of, row, "Offered")];
    const detail = revision === offered || offered === "" || offered === "0" ? cell(of, row, "Catalog") : `${cell(of, row, "Catalog")} r${revision} → r${offered}`;
    return [{ kind, state, what: "Environment", detail, target: target("environments", row), address: addressOf("environments", row), row }];
  });
}

function otherItems(of: Table, resource: string, what: string, kindOf: (row: Row, state: string) => StateKind, detail: string, address: (row: Row) => string): InboxItem[] {
  return [...of.rows.values()].flatMap((row) => {
    const state = cell(of, row, "State");
    const kind = kindOf(row, state);
    if (kind !== "failed" && kind !== "warning") return [];
    return [{ kind, state, what, detail: cell(of, row, detail), target: target(resource, row), address: address(row), row }];
  });
}

const target = (resource: string, row: Row): Target => ({ resource, namespace: row.namespace, name: row.name });

// waiting are all items, the worst first.
export const waiting = computed((): InboxItem[] => {
  const catalogs = table("appcatalogs").value;
  const destinations = table("gitdestinationstatuses").value;
  const all = [
    ...environmentItems(table("environments").value),
    ...otherItems(catalogs, "appcatalogs", "Catalog", (row, state) => catalogKind(state, cell(catalogs, row, "Ready")), "Source", (row) => `${addressOf("catalogs", row)}${cell(catalogs, row, "State").includes("missing") ? "?show=workloads" : ""}`),
    ...otherItems(destinations, "gitdestinations", "Git destination", (row, state) => destinationKind(state, cell(destinations, row, "Error")), "Branch", () => to(["git"])),
    ...otherItems(table("syncpipelines").value, "syncpipelines", "Pipeline", (_, state) => pipelineKind(state), "Sinks", () => to(["pipelines"])),
  ];
  return all.sort((a, b) => severity(a.kind) - severity(b.kind) || keyOf(a.row).localeCompare(keyOf(b.row)));
});
