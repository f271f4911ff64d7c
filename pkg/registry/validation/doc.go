// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package validation validates objects of the group configbutler.ai. Every error names the field and what is allowed,
// and none quotes what can be a credential.
package validation
