// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package references finds the ConfigMaps, Secrets, Services, ServiceAccounts and PersistentVolumeClaims that an object
// refers to in its namespace, and the fields that refer to them.
//
// Of reads references by name: from workloads in their pod templates, ServiceAccounts, Ingresses, and Gateways,
// HTTPRoutes and GRPCRoutes of the Gateway API. Gateways returns the Gateways that a route attaches to. Selecting finds
// the Services that select the pods of workloads. References are not followed: the Secrets of a workload's
// ServiceAccount require a call of Of for the ServiceAccount. Nothing is read from a cluster, and the targets need not
// exist.
package references
