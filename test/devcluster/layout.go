// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package devcluster

import "path/filepath"

// layout names the files of a cluster; its value is the cluster's folder.
type layout string

func (l layout) join(parts ...string) string {
	return filepath.Join(append([]string{string(l)}, parts...)...)
}

func (l layout) state() string               { return l.join("cluster.json") }
func (l layout) env() string                 { return l.join("env") }
func (l layout) stages() string              { return l.join("stages.yaml") }
func (l layout) pki() string                 { return l.join("pki") }
func (l layout) kubeconfigs() string         { return l.join("kubeconfigs") }
func (l layout) logs() string                { return l.join("logs") }
func (l layout) etcd() string                { return l.join("etcd") }
func (l layout) git() string                 { return l.join("git") }
func (l layout) data() string                { return l.join("data") }
func (l layout) attribution(n string) string { return l.join("attribution", n) }
func (l layout) certificate(n string) string { return l.join("pki", n+".crt") }
func (l layout) key(n string) string         { return l.join("pki", n+".key") }
func (l layout) log(n string) string         { return l.join("logs", n+".log") }
func (l layout) kubeconfig(n string) string  { return l.join("kubeconfigs", n+".kubeconfig") }

// folders are the folders that exist from the start.
func (l layout) folders() []string {
	return []string{l.pki(), l.kubeconfigs(), l.logs(), l.etcd(), l.git(), l.data(), l.attribution("")}
}

// all is everything that a cluster writes into its folder.
func (l layout) all() []string {
	return append(l.folders(), l.state(), l.env(), l.stages())
}
