// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package audit contains the default audit policy of the server.
package audit

import _ "embed"

// Policy is the default audit policy as YAML.
//
//go:embed audit-policy.yaml
var Policy []byte
