// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"fmt"
	"io"
	"os"
	"path/filepath"

	"gopkg.in/natefinch/lumberjack.v2"
	"k8s.io/apimachinery/pkg/runtime/schema"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/apiserver/pkg/audit/policy"
	genericapiserver "k8s.io/apiserver/pkg/server"
	genericoptions "k8s.io/apiserver/pkg/server/options"
	pluginlog "k8s.io/apiserver/plugin/pkg/audit/log"

	"github.com/configbutler/slipstream/artifacts/audit"
)

const (
	// auditLog is the audit log in the data directory.
	auditLog = "audit/audit.log"
	// stdout is the value of upstream's flag for standard output.
	stdout = "-"
	// auditFileMegabytes is the size of one file of the log in the data directory, auditFiles the number of rotated
	// files.
	auditFileMegabytes = 100
	auditFiles         = 10
)

// completeAudit enables the audit log by default. A user's own policy requires a user's own destination.
func completeAudit(o *genericoptions.AuditOptions, storage *StorageOptions) {
	if o.PolicyFile != "" || o.LogOptions.Path != "" {
		return
	}
	if storage.Backend != BackendBolt {
		o.LogOptions.Path = stdout
		return
	}
	o.LogOptions.Path = filepath.Join(storage.DataDir, auditLog)
	o.LogOptions.MaxSize, o.LogOptions.MaxBackups = auditFileMegabytes, auditFiles
}

// applyAudit applies the shipped policy unless the user provides one. Without a policy, upstream logs nothing.
func applyAudit(o *genericoptions.AuditOptions, config *genericapiserver.Config) error {
	if o.PolicyFile != "" || o.LogOptions.Path == "" {
		return nil
	}
	shipped, err := policy.LoadPolicyFromBytes(audit.Policy)
	if err != nil {
		return fmt.Errorf("reading the audit policy of the server: %w", err)
	}
	version, err := schema.ParseGroupVersion(o.LogOptions.GroupVersionString)
	if err != nil {
		version = auditv1.SchemeGroupVersion
	}
	config.AuditPolicyRuleEvaluator = policy.NewPolicyRuleEvaluator(shipped)
	config.AuditBackend = pluginlog.NewBackend(auditWriter(&o.LogOptions), o.LogOptions.Format, version)
	return nil
}

func auditWriter(o *genericoptions.AuditLogOptions) io.Writer {
	if o.Path == stdout {
		return os.Stdout
	}
	return &lumberjack.Logger{Filename: o.Path, MaxAge: o.MaxAge, MaxBackups: o.MaxBackups, MaxSize: o.MaxSize, Compress: o.Compress}
}
