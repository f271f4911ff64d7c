// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// The kinds of states. The server words each state as a sentence; its first words decide about the icon and the numbers at the top.
import { cell, type Row, type Table } from "./store";

export type StateKind = "synced" | "waiting" | "syncing" | "conflict" | "failed" | "stopped" | "warning";

// kinds are those of environments, in the order of the numbers at the top.
export const kinds = ["synced", "waiting", "syncing", "conflict", "failed"] as const;

export const nouns: Record<StateKind, string> = {
  synced: "synced",
  waiting: "waiting",
  syncing: "syncing",
  conflict: "conflicts",
  failed: "failed",
  stopped: "stopped",
  warning: "warning",
};

// severity orders states, the worst first.
const order: StateKind[] = ["conflict", "failed", "warning", "waiting", "stopped", "syncing", "synced"];

export const severity = (kind: StateKind): number => order.indexOf(kind);

export function environmentKind(state: string): StateKind {
  if (state.startsWith("Conflict")) return "conflict";
  if (/^(Failed|Stalled)/.test(state)) return "failed";
  if (/^(Syncing|Taking over|Comparing|Not looked at|Deleting)/.test(state)) return "syncing";
  if (state.startsWith("Synced")) return "synced";
  return "waiting";
}

export function environmentKindOf(of: Table, row: Row): StateKind {
  return environmentKind(cell(of, row, "State"));
}

export function catalogKind(state: string, ready: string): StateKind {
  if (/^(Not looked at|Taking over)/.test(state)) return "syncing";
  if (ready !== "" && ready !== "True") return "failed";
  if (/^(Paused|Pinned|Changes are only)/.test(state)) return "stopped";
  return /missing|never seen|Nothing offered/.test(state) ? "warning" : "synced";
}

export function destinationKind(state: string, error: string): StateKind {
  if (error !== "" || /^(Not mirrored|Failed)/.test(state)) return "failed";
  if (/^(Suspended|Held)/.test(state)) return "stopped";
  if (/except for|is in force$/.test(state)) return "warning";
  return state === "Up to date" ? "synced" : "syncing";
}

export function pipelineKind(state: string): StateKind {
  if (/^(Suspended|Held)/.test(state)) return "stopped";
  if (state === "Up to date") return "synced";
  if (/(waiting|Listing|^Not looked at|^Taking over|^Deleting|sent)/.test(state) && !/attempt/.test(state)) return "syncing";
  return "failed";
}

export function recordKind(state: string, type = ""): StateKind {
  if (type === "Dependency" && state.endsWith("changed")) return "waiting";
  if (/^(Conflict)/.test(state)) return "conflict";
  if (/^(Failed|Manual|Needs)/.test(state)) return "failed";
  if (/^(Retrying)/.test(state)) return "warning";
  if (/^(Pending|Waits|Waiting)/.test(state)) return "waiting";
  if (/^(In ?progress|Syncing|Running)/i.test(state)) return "syncing";
  if (/^(Dismissed|Superseded)/.test(state)) return "stopped";
  return "synced";
}
