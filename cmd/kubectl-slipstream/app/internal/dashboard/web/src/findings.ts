// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// What a plan of a sync, as the plugin prints it, says about fields that others have changed in the environment.
import type { Result } from "./output";

export interface Owned {
  object: string;
  field: string;
  // owners are the field managers, as the plugin prints them.
  owners: string;
}

export interface Findings {
  // conflicts are fields that were changed in the environment and in the catalog. A sync leaves their workloads as they are.
  conflicts: Owned[];
  // overwritten are fields that others have written in the environment, and that a sync sets.
  overwritten: Owned[];
}

// owned matches the line of a field with an owner other than Slipstream: ~ KIND/NAME  FIELD  (owned by MANAGER).
const owned = /^~ (\S+) +(.+?) {2}\((conflict|owned by)(?:: owned by)? ?(.*?)\)(?: {2}|$)/;

export function findingsOf(result: Result): Findings {
  const all: Findings = { conflicts: [], overwritten: [] };
  for (const { text, note } of result.output) {
    const match = note ? null : owned.exec(text);
    if (!match) continue;
    const [, object = "", field = "", kind, owners = ""] = match;
    (kind === "conflict" ? all.conflicts : all.overwritten).push({ object, field, owners });
  }
  return all;
}
