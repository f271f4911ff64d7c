// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"testing"
	"time"

	"k8s.io/apiserver/pkg/storage/storagebackend"
)

// TestEtcdConfig has the values of k8s.io/apiserver/pkg/storage/storagebackend/factory, which does not export them.
func TestEtcdConfig(t *testing.T) {
	config, err := etcdConfig(storagebackend.TransportConfig{ServerList: []string{"http://127.0.0.1:2379"}})
	if err != nil {
		t.Fatal(err)
	}
	got := [3]time.Duration{config.DialTimeout, config.DialKeepAliveTime, config.DialKeepAliveTimeout}
	if want := [3]time.Duration{20 * time.Second, 30 * time.Second, 10 * time.Second}; got != want {
		t.Errorf("dial timeout, keepalive time and keepalive timeout are %v, want %v", got, want)
	}
	if config.TLS != nil {
		t.Error("got TLS without any certificate")
	}
	if _, err := etcdConfig(storagebackend.TransportConfig{KeyFile: "key.pem"}); err == nil {
		t.Error("got no error for a key without its certificate")
	}
}
