// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package proxy connects to servers that users name, directly or through a proxy: one that a user names in a Secret, or one
// of the server's environment.
//
// The policy for addresses applies to what is connected to, through a proxy or not. A proxy that a user names is an address
// like any other. A proxy of the environment belongs to the operator, and may be where users must not connect to. The
// server behind a proxy is checked before the proxy receives its name or address: the addresses to which its name resolves
// here, each of them. A proxy resolves a name again, and may find another address. So it receives the name only for
// https, where the server then has to prove the name with a certificate, and else the address that was checked.
package proxy
