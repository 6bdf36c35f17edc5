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

package storehistory

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/synchub-dev/synchub/provider/requestclass"
)

const (
	// configMapName is the ConfigMap with the last rewind, and rewindKey its key there.
	configMapName, rewindKey = "store-history", "rewind"
	// requestTimeout bounds each request, and retryInterval is the time between attempts to store a rewind.
	requestTimeout = 30 * time.Second
	retryInterval  = 5 * time.Second
)

// Load reads the stored rewind. The hub syncs no object before that.
func (g *Guard) Load(ctx context.Context) error {
	if g == nil {
		return nil
	}
	_, stored, err := g.read(ctx)
	if err != nil {
		return err
	}
	g.lock.Lock()
	changed := g.adoptLocked(stored)
	g.lock.Unlock()
	if changed {
		g.changes.Publish(struct{}{})
	}
	return nil
}

// NeedLeaderElection returns false: each replica detects rewinds.
func (g *Guard) NeedLeaderElection() bool { return false }

// Start stores rewinds, and adopts those that other replicas stored, until ctx ends. A replica that does not lead may not write;
// it tries again.
func (g *Guard) Start(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-g.wake:
		}
		for ctx.Err() == nil {
			err := g.save(ctx)
			if err == nil {
				break
			}
			g.Log.V(1).Info("cannot store that kcp went back to an earlier state", "error", err.Error())
			select {
			case <-ctx.Done():
			case <-g.Clock.After(retryInterval):
			}
		}
	}
}

// store makes Start store the rewind.
func (g *Guard) store() {
	select {
	case g.wake <- struct{}{}:
	default:
	}
}

// save stores the rewind, or adopts the stored one if that is the same event.
func (g *Guard) save(ctx context.Context) error {
	found, stored, err := g.read(ctx)
	if err != nil {
		return err
	}
	g.lock.Lock()
	isOther := g.settleLocked(stored)
	changed := g.adoptLocked(stored) || isOther
	isStored, rewind := g.isStored, *g.rewind
	g.lock.Unlock()
	if isOther {
		g.restartWatches()
	}
	if changed {
		g.changes.Publish(struct{}{})
	}
	if isStored {
		return nil
	}
	text, err := json.Marshal(rewind)
	if err != nil {
		return fmt.Errorf("cannot encode a rewind: %w", err)
	}
	ctx, cancel := context.WithTimeout(requestclass.With(ctx, requestclass.Background), requestTimeout)
	defer cancel()
	next := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: g.Namespace, Name: configMapName}, Data: map[string]string{rewindKey: string(text)}}
	if found == nil {
		err = g.Client.Create(ctx, next)
	} else {
		next.ResourceVersion = found.ResourceVersion
		err = g.Client.Update(ctx, next)
	}
	if err != nil {
		return fmt.Errorf("cannot store a rewind: %w", err)
	}
	g.lock.Lock()
	defer g.lock.Unlock()
	g.isStored, g.wasStored = *g.rewind == rewind, g.wasStored || g.rewind.ID == rewind.ID
	if !g.isStored {
		g.store()
	}
	return nil
}

// read returns the ConfigMap and the rewind in it; both are nil if there is none.
func (g *Guard) read(ctx context.Context) (*corev1.ConfigMap, *Rewind, error) {
	ctx, cancel := context.WithTimeout(requestclass.With(ctx, requestclass.Background), requestTimeout)
	defer cancel()
	var found corev1.ConfigMap
	err := g.Reader.Get(ctx, types.NamespacedName{Namespace: g.Namespace, Name: configMapName}, &found)
	if apierrors.IsNotFound(err) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("cannot read whether kcp went back to an earlier state: %w", err)
	}
	var rewind Rewind
	if err := json.Unmarshal([]byte(found.Data[rewindKey]), &rewind); err != nil {
		return nil, nil, fmt.Errorf("the ConfigMap %s/%s is not readable; delete it if kcp was not restored: %w", g.Namespace, configMapName, err)
	}
	return &found, &rewind, nil
}
