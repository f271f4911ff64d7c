// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Filters of the environments that the user has saved in this browser.
import { signal } from "@preact/signals";
import type { JSX } from "preact";
import { Icon } from "./icons";
import { route, setQuery } from "./routes";

interface Saved {
  name: string;
  query: Record<string, string>;
}

const storageKey = "slipstream-filters";

function read(): Saved[] {
  try {
    const stored: unknown = JSON.parse(localStorage.getItem(storageKey) ?? "[]");
    return Array.isArray(stored) ? (stored as Saved[]).filter((each) => typeof each?.name === "string" && typeof each.query === "object") : [];
  } catch {
    return [];
  }
}

const saved = signal(read());

function store(filters: Saved[]): void {
  saved.value = filters;
  localStorage.setItem(storageKey, JSON.stringify(filters));
}

const nameOf = ({ q = "", state = "", by = "" }: Record<string, string>): string => [state, q, by && `by ${by}`].filter(Boolean).join(", ");

export function SavedFilters(): JSX.Element {
  const name = nameOf(route.value.query);
  const exists = saved.value.some((each) => each.name === name);
  const others = { q: "", state: "", by: "" };
  return (
    <div class="saved" role="group" aria-label="Saved filters">
      {saved.value.map((each) => (
        <span class="chip" key={each.name}>
          <button type="button" class="quiet small" aria-pressed={each.name === name} onClick={() => setQuery({ ...others, ...each.query })}>
            {each.name}
          </button>
          <button type="button" class="quiet small icon-only" aria-label={`Forget the filter ${each.name}`} onClick={() => store(saved.value.filter((other) => other !== each))}>
            <Icon of="close" />
          </button>
        </span>
      ))}
      {name !== "" && !exists && (
        <button type="button" class="quiet small" onClick={() => store([...saved.value, { name, query: route.value.query }])}>
          Save this filter
        </button>
      )}
    </div>
  );
}
