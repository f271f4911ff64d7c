// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package references answers which ConfigMaps, Secrets, Services, ServiceAccounts and PersistentVolumeClaims an object needs
// beside it in its namespace, and where it says so.
//
// Of reads what objects name: workloads in their pod templates, ServiceAccounts, Ingresses, and Gateways, HTTPRoutes and GRPCRoutes
// of the Gateway API. Gateways reads which Gateways a route attaches to. Selecting finds the Services that
// select the pods of workloads. Neither follows what it finds: the Secrets of the ServiceAccount of a workload come from
// asking about that ServiceAccount. Nobody is asked, and nothing has to exist.
package references
