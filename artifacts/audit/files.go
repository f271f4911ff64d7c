// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package audit answers what the server writes into its audit log unless it is told otherwise.
package audit

import _ "embed"

// Policy is the audit policy of the server, as YAML.
//
//go:embed audit-policy.yaml
var Policy []byte
