// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// What changed, who did it, and in which commit. New changes appear as they are pushed.
import type { JSX } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { ChangeList, type ChangeRow, changeRow, merged } from "../changelist";
import { isAbort, messageOf } from "../api";
import { list, type Listing } from "../listing";
import { Empty, Notice, Skeleton, Tables, scope, useDraft, useTitle } from "../parts";
import { route, setQuery } from "../routes";
import { hello, type Row, type Table, table } from "../store";
import { count } from "../time";

const page = 200;

type Query = Record<string, string>;

// fieldsOf returns the field selectors that the server knows.
function fieldsOf({ kind = "", who = "", bypass = "", commit = "" }: Query): Record<string, string> {
  const all = { "object.kind": kind, author: who, bypass: bypass === "1" ? "true" : "", commit };
  return Object.fromEntries(Object.entries(all).filter(([, value]) => value !== ""));
}

export function HistoryScreen(): JSX.Element {
  useTitle("History");
  const query = route.value.query;
  const live = table("changes").value;
  const older = useOlder(query);
  const of = live.columns.length > 0 ? live : older;
  const items = useMemo(() => {
    const newest = [...live.rows.values()].map((row) => changeRow(of, row)).filter((each) => matches(each, query));
    return merged(newest, older.rows.map((row) => changeRow(of, row)).filter((each) => matches(each, query)));
  }, [live, older.rows, query]);
  return (
    <>
      <div class="bar-row">
        <h1>History</h1>
        <Filters query={query} items={items} />
      </div>
      {older.error !== "" && <Notice kind="failed">{older.error}</Notice>}
      <Tables of={[live]} what="changes">
        {() => (
          <ChangeList
            label="Changes, newest first"
            items={items}
            view={JSON.stringify(query)}
            namespaces={(query.namespace ?? "") === ""}
            {...(older.more ? { end: older.more } : {})}
            empty={older.loading ? <Skeleton label="Loading changes" /> : <NoChanges filtered={Object.values(query).some(Boolean)} />}
          />
        )}
      </Tables>
      <p class="hint" aria-live="polite">
        {older.loading ? "Loading older changes" : `${count(items.length, "change")}.${older.complete ? " These are all that are kept. Older history is in Git." : ""}`}
      </p>
      {older.more && (
        <button type="button" class="quiet small" onClick={older.more}>
          Show older changes
        </button>
      )}
    </>
  );
}

function matches(of: ChangeRow, { namespace = "", kind = "", who = "", bypass = "", name = "", commit = "" }: Query): boolean {
  return (
    (namespace === "" || of.row.namespace === namespace) &&
    (kind === "" || of.kind.toLowerCase() === kind.toLowerCase()) &&
    (who === "" || of.who === who) &&
    (bypass !== "1" || of.bypass) &&
    (commit === "" || (of.commit !== "" && commit.startsWith(of.commit))) &&
    (name === "" || of.object.includes(name))
  );
}

interface Older {
  columns: string[];
  rows: Row[];
  loading: boolean;
  error: string;
  // complete is set once all have been read.
  complete: boolean;
  // more reads the next page. It is absent while it cannot.
  more?: () => void;
}

const none: Listing = { columns: [], rows: [], continue: "" };

// useOlder reads changes from the server, newest first, page by page as the user scrolls.
function useOlder(query: Query): Older {
  const [listing, setListing] = useState(none);
  const [loading, setLoading] = useState(false);
  const [error, setError] = useState("");
  const stop = useRef(new AbortController());
  const namespace = query.namespace || hello.value?.namespace || "";
  const fields = fieldsOf(query);
  const read = async (from: Listing) => {
    setLoading(true);
    setError("");
    const { signal } = stop.current;
    try {
      const next = await list({ resource: "changes", namespace, fields, limit: page, continue: from.continue }, signal);
      if (!signal.aborted) setListing({ columns: next.columns, rows: [...from.rows, ...next.rows], continue: next.continue });
    } catch (e) {
      if (!isAbort(e)) setError(messageOf(e));
    } finally {
      if (!signal.aborted) setLoading(false);
    }
  };
  useEffect(() => {
    setListing(none);
    stop.current = new AbortController();
    void read(none);
    return () => stop.current.abort();
  }, [JSON.stringify([namespace, fields])]);
  const { columns, rows } = listing;
  const older = { columns, rows, loading, error, complete: columns.length > 0 && listing.continue === "" };
  return loading || listing.continue === "" ? older : { ...older, more: () => void read(listing) };
}

interface Known {
  namespaces: string[];
  kinds: string[];
  people: string[];
}

// useKnown returns what the filters suggest: what was in the list since the screen was opened.
function useKnown(live: Table, items: ChangeRow[]): Known {
  const seen = useRef({ rows: new WeakSet<ChangeRow>(), namespaces: new Set<string>(), kinds: new Set<string>(), people: new Set<string>() });
  return useMemo(() => {
    const { rows, namespaces, kinds, people } = seen.current;
    for (const each of [...[...live.rows.values()].map((row) => changeRow(live, row)), ...items]) {
      if (rows.has(each)) continue;
      rows.add(each);
      namespaces.add(each.row.namespace);
      kinds.add(each.kind);
      if (!each.who.startsWith("(")) people.add(each.who);
    }
    const sorted = (of: Set<string>) => [...of].filter(Boolean).sort();
    return { namespaces: sorted(namespaces), kinds: sorted(kinds), people: sorted(people) };
  }, [live, items]);
}

function Filters({ query, items }: { query: Query; items: ChangeRow[] }): JSX.Element {
  const live = table("changes").value;
  const known = useKnown(live, items);
  return (
    <>
      <Filter name="namespace" label="Namespace" value={query.namespace ?? ""} known={known.namespaces} first />
      <Filter name="kind" label="Type" value={query.kind ?? ""} known={known.kinds} />
      <Filter name="who" label="Person" value={query.who ?? ""} known={known.people} />
      {query.commit && (
        <span class="chip">
          commit <code>{query.commit.slice(0, 7)}</code>
          <button type="button" class="quiet small" onClick={() => setQuery({ commit: "" })}>
            Remove
          </button>
        </span>
      )}
      <label class="inline choice" title="Changes by hand of what Flux, Argo CD, Helm or an operator manages">
        <input type="checkbox" checked={query.bypass === "1"} onChange={(e) => setQuery({ bypass: e.currentTarget.checked ? "1" : "" })} />
        Only bypassed
      </label>
    </>
  );
}

function Filter(props: { name: string; label: string; value: string; known: string[]; first?: boolean }): JSX.Element {
  const [draft, setDraft] = useDraft(props.value);
  const apply = (text: string) => {
    setDraft(text.trim());
    setQuery({ [props.name]: text.trim() });
  };
  return (
    <label class="inline">
      {props.label}
      <input type="search" list={`known-${props.name}`} data-filter={props.first} value={draft} placeholder="all" autocomplete="off" spellcheck={false} onInput={(e) => setDraft(e.currentTarget.value)} onChange={(e) => apply(e.currentTarget.value)} />
      <datalist id={`known-${props.name}`}>
        {props.known.map((each) => (
          <option key={each} value={each} />
        ))}
      </datalist>
    </label>
  );
}

function NoChanges({ filtered }: { filtered: boolean }): JSX.Element {
  if (filtered) {
    return (
      <Empty title="No change matches the filter">
        <button type="button" onClick={() => setQuery({ namespace: "", kind: "", who: "", bypass: "", commit: "" })}>
          Clear the filter
        </button>
      </Empty>
    );
  }
  return (
    <Empty title={`No changes yet${scope()}`} command="kubectl slipstream mirror --help">
      Changes appear here once objects are mirrored to Git.
    </Empty>
  );
}
