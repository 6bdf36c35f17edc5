/*
Copyright 2026 The synchub Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

package scenario

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/synchub-dev/synchub/test/bench/report"
)

// requests counts the requests for one change of one object. It first makes one deletion, because the first deletion in a
// mailbox lists the mailbox's objects once.
func requests(ctx context.Context, w *Env) ([]report.Row, error) {
	const namespace = "hub-requests"
	at := w.clusters[0]
	if err := at.prepare(ctx, namespace); err != nil {
		return nil, err
	}
	if err := at.configure(ctx, config(namespace, false, configMaps, deployments)); err != nil {
		return nil, err
	}
	mailbox, target := at.mailbox.Resource(configMaps).Namespace(namespace), at.target.Resource(configMaps).Namespace(namespace)
	workloads := at.target.Resource(deployments).Namespace(namespace)
	remove := func(name string) error { return mailbox.Delete(ctx, name, metav1.DeleteOptions{}) }
	isGone := func(name string) func() (bool, error) {
		return func() (bool, error) {
			_, err := target.Get(ctx, name, metav1.GetOptions{})
			return apierrors.IsNotFound(err), ignoreNotFound(err)
		}
	}
	if err := at.fill(ctx, configMaps, configMap(namespace, "first")); err != nil {
		return nil, err
	}
	if err := at.fill(ctx, deployments, deployment(namespace, "web")); err != nil {
		return nil, err
	}
	if err := exists(ctx, workloads, "web"); err != nil {
		return nil, err
	}
	if err := exists(ctx, target, "first"); err != nil {
		return nil, err
	}
	if err := remove("first"); err != nil {
		return nil, err
	}
	if err := poll(ctx, 50*time.Millisecond, isGone("first")); err != nil {
		return nil, err
	}
	w.synced++

	var rows []report.Row
	for _, step := range []struct {
		what string
		do   func() error
		done func() (bool, error)
	}{
		{"create", func() error { return at.fill(ctx, configMaps, configMap(namespace, "one")) }, func() (bool, error) {
			_, err := target.Get(ctx, "one", metav1.GetOptions{})
			return err == nil, ignoreNotFound(err)
		}},
		{"update", func() error {
			_, err := mailbox.Patch(ctx, "one", types.MergePatchType, []byte(`{"data": {"entry": "1"}}`), metav1.PatchOptions{})
			return err
		}, func() (bool, error) {
			object, err := target.Get(ctx, "one", metav1.GetOptions{})
			if err != nil {
				return false, err
			}
			entry, _, _ := unstructured.NestedString(object.Object, "data", "entry")
			return entry == "1", nil
		}},
		{"status", func() error {
			_, err := workloads.Patch(ctx, "web", types.MergePatchType, []byte(`{"status": {"observedGeneration": 1, "replicas": 2}}`), metav1.PatchOptions{}, "status")
			return err
		}, func() (bool, error) {
			object, err := at.mailbox.Resource(deployments).Namespace(namespace).Get(ctx, "web", metav1.GetOptions{})
			if err != nil {
				return false, err
			}
			replicas, _, _ := unstructured.NestedInt64(object.Object, "status", "replicas")
			return replicas == 2, nil
		}},
		{"delete", func() error { return remove("one") }, isGone("one")},
	} {
		if err := w.waitIdle(ctx); err != nil {
			return rows, err
		}
		made, err := w.caused(ctx, step.do, step.done)
		if err != nil {
			return rows, fmt.Errorf("%s: %w", step.what, err)
		}
		for _, row := range made {
			row.What = step.what + ": " + row.What
			rows = append(rows, row)
		}
	}
	return rows, nil
}

// caused returns the requests that a change causes: the sum of class object, which may be one, and each other kind. The
// status writes of SyncerConfigs do not count, since they are limited by time.
func (w *measuredHub) caused(ctx context.Context, do func() error, done func() (bool, error)) ([]report.Row, error) {
	before, err := w.Hub.Requests(ctx)
	if err != nil {
		return nil, err
	}
	if err := do(); err != nil {
		return nil, err
	}
	if err := poll(ctx, 50*time.Millisecond, done); err != nil {
		return nil, err
	}
	if err := w.waitIdle(ctx); err != nil {
		return nil, err
	}
	after, err := w.Hub.Requests(ctx)
	writes := report.Row{What: "writes of the object", Limit: new(1.0), Hub: []float64{0}}
	var rows []report.Row
	for kind, count := range after {
		more := count - before[kind]
		switch {
		case more == 0 || kind.Class == "background" || kind.Resource == "syncerconfigs/status":
		case kind.Class == "object":
			writes.Hub[0] += more
		default:
			rows = append(rows, report.Row{What: kind.String(), Hub: []float64{more}})
		}
	}
	return append([]report.Row{writes}, rows...), err
}
