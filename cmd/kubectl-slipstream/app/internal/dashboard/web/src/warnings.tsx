// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// What a user should know before a sync is run.
import type { JSX } from "preact";
import type { Findings, Owned } from "./findings";
import { Notice } from "./parts";
import { count } from "./time";

// Warnings say what a sync overwrites, and what it leaves for a decision, before it is run.
export function Warnings({ of }: { of: Findings }): JSX.Element {
  const { conflicts, overwritten } = of;
  return (
    <>
      {overwritten.length > 0 && (
        <Notice kind="warning">
          <p>
            <strong>This overwrites {count(overwritten.length, "field")} that Slipstream did not write.</strong> A user or another tool changed {overwritten.length === 1 ? "it" : "them"} here. Those values are lost.
          </p>
          <Fields of={overwritten} />
        </Notice>
      )}
      {conflicts.length > 0 && (
        <Notice kind="conflict">
          <p>
            <strong>
              {count(conflicts.length, "field")} {conflicts.length === 1 ? "was" : "were"} changed here and in the catalog.
            </strong>{" "}
            {conflicts.length === 1 ? "Its workload stays as it is" : "Their workloads stay as they are"} until you decide which side stays. Everything else is taken. The decision comes next.
          </p>
          <Fields of={conflicts} />
        </Notice>
      )}
    </>
  );
}

// mostFields is the number of fields that a warning lists.
const mostFields = 6;

function Fields({ of }: { of: Owned[] }): JSX.Element {
  return (
    <ul class="fields-list">
      {of.slice(0, mostFields).map((each) => (
        <li key={`${each.object} ${each.field}`}>
          <code>
            {each.object} {each.field}
          </code>{" "}
          {each.owners !== "" && <span class="dim">written by {each.owners}</span>}
        </li>
      ))}
      {of.length > mostFields && <li class="dim">and {of.length - mostFields} more</li>}
    </ul>
  );
}
