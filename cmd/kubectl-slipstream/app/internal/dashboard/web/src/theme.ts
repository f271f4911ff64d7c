// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Light and dark: as the system has it, or as the user chose.
import { signal } from "@preact/signals";

export type Theme = "system" | "light" | "dark";

const storageKey = "slipstream-theme";

export const theme = signal<Theme>((localStorage.getItem(storageKey) as Theme | null) ?? "system");

export function applyTheme(): void {
  if (theme.value === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme.value;
}

export function setTheme(chosen: Theme): void {
  theme.value = chosen;
  localStorage.setItem(storageKey, chosen);
  applyTheme();
}
