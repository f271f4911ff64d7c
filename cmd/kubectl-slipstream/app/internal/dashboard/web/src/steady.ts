// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Keeps the order of items while the pointer is over them, so that no one moves under it. What they show stays up to date.
import { useRef, useState } from "preact/hooks";

export interface Steady<T> {
  items: T[];
  onPointerEnter: (e: PointerEvent) => void;
  onPointerLeave: () => void;
}

export function useSteady<T>(items: T[], keyOf: (item: T) => string): Steady<T> {
  const [over, setOver] = useState(false);
  const order = useRef<string[]>([]);
  const steady = over ? inOrder(items, keyOf, order.current) : items;
  order.current = steady.map(keyOf);
  return { items: steady, onPointerEnter: (e) => e.pointerType === "mouse" && setOver(true), onPointerLeave: () => setOver(false) };
}

// inOrder returns items in an earlier order, with new ones at the end.
function inOrder<T>(items: T[], keyOf: (item: T) => string, order: string[]): T[] {
  const place = new Map(order.map((key, i) => [key, i]));
  const at = (item: T) => place.get(keyOf(item)) ?? order.length;
  return [...items].sort((a, b) => at(a) - at(b));
}
