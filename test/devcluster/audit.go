// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package devcluster

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"sigs.k8s.io/yaml"

	"github.com/configbutler/slipstream/test/devcluster/rights"
)

// EnvRights is an environment variable of the processes that start and stop clusters: the folder in which each stopped
// cluster records which rights the server's account has used, for test/rights to check.
const EnvRights = "SLIPSTREAM_RIGHTS"

// auditLog is the name of the audit log of kube-apiserver.
const auditLog = "audit"

// auditLogSize, in MiB, exceeds the size of any log, so that it is not rotated.
const auditLogSize = "1048576"

// AuditLog is the file to which kube-apiserver writes, with the option AuditLog, the requests of the server and the events for
// the audit webhook. A line is written before the response.
func (c *Cluster) AuditLog() string { return c.files.log(auditLog) }

// writesAuditLog reports whether the log is needed.
func (c *Cluster) writesAuditLog() bool {
	return c.state.Options.AuditLog || os.Getenv(EnvRights) != ""
}

// writeAuditPolicy writes the policy of kube-apiserver: for the webhook, the events of the users' policy, and for the log, the
// requests of the server's account. With a log, the webhook gets the same events of changes: of the account's requests, only those
// that change nothing are recorded in addition.
func (c *Cluster) writeAuditPolicy() error {
	policy := auditv1.Policy{TypeMeta: metav1.TypeMeta{APIVersion: auditv1.SchemeGroupVersion.String(), Kind: "Policy"}}
	server := auditv1.PolicyRule{Level: auditv1.LevelMetadata, Users: []string{ServerUser}}
	if c.state.Options.Audit {
		content, err := c.attributionFile(auditPolicy)
		if err != nil {
			return err
		}
		if err := yaml.UnmarshalStrict([]byte(content), &policy); err != nil {
			return fmt.Errorf("failed to decode the audit policy: %w", err)
		}
		server.Verbs = []string{"get", "list", "watch"}
	}
	if c.writesAuditLog() {
		for i := range policy.Rules {
			policy.Rules[i].OmitStages = append(policy.Rules[i].OmitStages, policy.OmitStages...)
		}
		// A watch is recorded when it begins, since it ends with the cluster.
		policy.OmitStages = []auditv1.Stage{auditv1.StageRequestReceived}
		policy.Rules = append([]auditv1.PolicyRule{server}, policy.Rules...)
	}
	content, err := yaml.Marshal(policy)
	if err != nil {
		return fmt.Errorf("failed to encode the audit policy: %w", err)
	}
	return writeWhole(c.files.attribution(auditPolicy), content)
}

// auditLogFlags make kube-apiserver record events, if they are needed.
func (c *Cluster) auditLogFlags() []string {
	var flags []string
	if c.state.Options.Audit || c.writesAuditLog() {
		flags = append(flags, "--audit-policy-file="+c.files.attribution(auditPolicy))
	}
	if c.writesAuditLog() {
		flags = append(flags, "--audit-log-path="+c.AuditLog(), "--audit-log-mode=blocking", "--audit-log-maxsize="+auditLogSize)
	}
	return flags
}

// noteRights records which rights the server's account has used, if EnvRights is set. The servers have ended.
func (c *Cluster) noteRights(ctx context.Context) error {
	folder := os.Getenv(EnvRights)
	if folder == "" || !c.runs("kube-apiserver") {
		return nil
	}
	everywhere, err := c.rolesEverywhere(ctx)
	if err != nil {
		return err
	}
	record, err := rights.Read(c.AuditLog(), ServerUser, everywhere)
	if err != nil {
		return err
	}
	record.Program, record.Denials = filepath.Base(os.Args[0]), c.state.Options.Denials
	return record.Write(folder)
}

// rolesEverywhere returns the roles that the server's account has in the whole cluster.
func (c *Cluster) rolesEverywhere(ctx context.Context) ([]rbacv1.ClusterRole, error) {
	admin, err := c.adminClient()
	if err != nil {
		return nil, err
	}
	bindings, err := admin.RbacV1().ClusterRoleBindings().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("failed to list ClusterRoleBindings: %w", err)
	}
	roles, err := admin.RbacV1().ClusterRoles().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("failed to list ClusterRoles: %w", err)
	}
	return slices.DeleteFunc(roles.Items, func(role rbacv1.ClusterRole) bool {
		return !slices.ContainsFunc(bindings.Items, func(binding rbacv1.ClusterRoleBinding) bool {
			return binding.RoleRef.Name == role.Name && slices.ContainsFunc(binding.Subjects, isServer)
		})
	}), nil
}

func isServer(subject rbacv1.Subject) bool {
	return subject.Name == ServerUser ||
		subject.Kind == rbacv1.ServiceAccountKind && subject.Namespace == ServerNamespace && subject.Name == serverAccount
}
