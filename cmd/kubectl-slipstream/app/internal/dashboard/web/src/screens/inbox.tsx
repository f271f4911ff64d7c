// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// What waits for the user, and what happened last.
import type { JSX } from "preact";
import { useMemo, useState } from "preact/hooks";
import { ActionButton, ask } from "../actions";
import { ChangeList, changeRow, folded, newestFirst } from "../changelist";
import { type InboxItem, waiting } from "../inboxitems";
import { type Column, List } from "../list";
import { Empty, Section, ShowAll, State, Tables, scope, useMedia, useTitle } from "../parts";
import { go, to } from "../routes";
import { keyOf, table } from "../store";
import { number } from "../time";

const newest = 50;

export function InboxScreen(): JSX.Element {
  useTitle("Inbox");
  const environments = table("environments").value;
  const items = waiting.value;
  const [all, setAll] = useState(false);
  // As many items as leave the activity in view, unless the user wants to see all.
  const mostItems = useMedia("(min-width: 1500px)") ? 30 : 12;
  const shown = useMemo(() => (all ? items : items.slice(0, mostItems)), [items, all, mostItems]);
  const changes = table("changes").value;
  const activity = useMemo(
    () =>
      folded([...changes.rows.values()].sort(newestFirst).map((row) => changeRow(changes, row))).slice(0, newest),
    [changes],
  );
  return (
    <>
      <h1 class="hidden">Inbox</h1>
      <div class="columns">
        <Section title="Waits for you" {...(environments.phase === "ready" ? { count: number(items.length) } : {})}>
          <Tables of={[environments]} what="environments">
            {() => <List label="What waits for you" columns={columns} items={shown} keyOf={itemKey} versionOf={itemVersion} open={(item) => go(item.address)} press={press} empty={<Nothing size={environments.rows.size} />} />}
          </Tables>
          <ShowAll size={items.length} most={mostItems} all={all} change={setAll} />
        </Section>
        <Section title="Activity" actions={<a href={to(["history"])}>All changes</a>}>
          <Tables of={[changes]} what="changes">
            {() => (
              <ChangeList
                label="Newest changes"
                items={activity}
                namespaces={true}
                empty={
                  <Empty title={`No changes yet${scope()}`} command="kubectl slipstream mirror --help">
                    Changes appear here once objects are mirrored to Git.
                  </Empty>
                }
              />
            )}
          </Tables>
        </Section>
      </div>
    </>
  );
}

const itemKey = (item: InboxItem): string => `${item.target.resource} ${keyOf(item.row)}`;
const itemVersion = (item: InboxItem): string => item.row.version;

const columns: Column<InboxItem>[] = [
  { title: "State", width: "minmax(180px, 2.2fr)", narrow: 2, cell: (item) => <State kind={item.kind} text={item.state} /> },
  {
    title: "Object",
    width: "minmax(130px, 1.6fr)",
    narrow: 1,
    cell: (item) => (
      <span class="object">
        <a href={item.address} tabIndex={-1}>
          {item.row.namespace !== "" && <span class="kind">{item.row.namespace}/</span>}
          {item.row.name}
        </a>
      </span>
    ),
  },
  { title: "About", width: "minmax(90px, 1fr)", from: 700, cell: (item) => <span class="dim">{item.what === "Environment" ? item.detail : item.what}</span> },
  { title: "Actions", width: "172px", cell: (item) => <Actions item={item} />, from: 460, end: true, narrow: 3 },
];

function Actions({ item }: { item: InboxItem }): JSX.Element | null {
  if (item.target.resource === "gitdestinations") return <ActionButton target={item.target} action="sync" label="Retry" small />;
  if (item.target.resource !== "environments") {
    return (
      <a class="button small" href={item.address}>
        {item.what === "Catalog" && item.kind === "warning" ? "Show what is missing" : "Show"}
      </a>
    );
  }
  if (item.kind === "conflict") {
    return (
      <button type="button" class="small primary" onClick={() => ask(item.target, "decide")}>
        Decide now
      </button>
    );
  }
  return (
    <span class="buttons">
      <ActionButton target={item.target} action="sync" label={item.kind === "failed" ? "Take again" : "Take"} small />
      {item.kind === "waiting" && <ActionButton target={item.target} action="dismiss" label="Dismiss" small />}
    </span>
  );
}

function press(key: string, { target, address }: InboxItem): boolean {
  if (target.resource !== "environments") return false;
  return pressOnEnvironment(key, target, address);
}

// pressOnEnvironment does what a key means for an environment.
export function pressOnEnvironment(key: string, target: InboxItem["target"], address: string): boolean {
  switch (key) {
    case "d":
      go(`${address}?tab=diff`);
      return true;
    case "s":
      ask(target, "sync", { action: "catalog" });
      return true;
    case "c":
      ask(target, "sync", { action: "cluster" });
      return true;
    case "x":
      ask(target, "dismiss");
      return true;
  }
  return false;
}

function Nothing({ size }: { size: number }): JSX.Element {
  if (size > 0) return <Empty title="Nothing waits for you">Conflicts, failures and changes to take appear here.</Empty>;
  return (
    <Empty title={`There are no environments yet${scope()}`} command="kubectl slipstream environment --help">
      An environment is a namespace that is built from a catalog. This command writes the manifest of the first one.
    </Empty>
  );
}
