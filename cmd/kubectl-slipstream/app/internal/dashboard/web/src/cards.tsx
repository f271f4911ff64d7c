// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// A few objects, each with its details.
import type { ComponentChildren, JSX } from "preact";
import { useSteady } from "./steady";

export function Cards<T>(props: { items: T[]; keyOf: (item: T) => string; card: (item: T) => ComponentChildren }): JSX.Element {
  const { items, ...pointer } = useSteady(props.items, props.keyOf);
  return (
    <ul class="cards" {...pointer}>
      {items.map((item) => (
        <li key={props.keyOf(item)}>{props.card(item)}</li>
      ))}
    </ul>
  );
}
