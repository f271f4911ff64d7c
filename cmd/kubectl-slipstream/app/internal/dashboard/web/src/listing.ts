// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Lists that are read when a screen needs them.
import { post } from "./api";
import { type Loaded, useLoaded } from "./parts";
import type { Row } from "./store";

export interface Listing {
  columns: string[];
  rows: Row[];
  continue: string;
}

export interface ListQuery {
  resource: string;
  namespace?: string;
  labelSelector?: string;
  fields?: Record<string, string>;
  limit?: number;
  continue?: string;
}

interface Answer {
  columns: string[] | null;
  rows: Row[] | null;
  continue?: string;
}

export async function list(query: ListQuery, stop?: AbortSignal): Promise<Listing> {
  const answer = await post<Answer>("/api/list", { namespace: "", limit: 500, ...query }, stop);
  const received = Date.now();
  return { columns: answer.columns ?? [], rows: (answer.rows ?? []).map((row) => ({ ...row, received })), continue: answer.continue ?? "" };
}

// useListing lists again whenever version changes.
export function useListing(query: ListQuery, version: string): Loaded<Listing> {
  return useLoaded(`${JSON.stringify(query).replaceAll("#", "")}#${version}`, (stop) => list(query, stop));
}

// useObject reads an object again whenever version changes.
export function useObject<T>(resource: string, namespace: string, name: string, version: string): Loaded<T> {
  return useLoaded(`${resource}/${namespace}/${name}#${version}`, async (stop) => (await post<{ object: T }>("/api/object", { resource, namespace, name }, stop)).object);
}
