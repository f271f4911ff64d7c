// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// The page of kubectl slipstream dashboard.
import { render } from "preact";
import { openSession } from "./api";
import { startKeys } from "./keys";
import { startRouting } from "./routes";
import { Shell } from "./shell";
import { follow } from "./stream";
import { applyTheme } from "./theme";

applyTheme();
await openSession();
startRouting();
startKeys();
render(<Shell />, document.getElementById("page")!);
void follow();
