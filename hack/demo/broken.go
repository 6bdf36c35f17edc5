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

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	prometheusapi "github.com/prometheus/client_golang/api"
	prometheusv1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"

	"github.com/synchub-dev/synchub/hack/demo/pictures"
	"github.com/synchub-dev/synchub/test/framework/dashboards"
	"github.com/synchub-dev/synchub/test/framework/servers"
)

const (
	// dashboardFiles is the directory of the chart's dashboards.
	dashboardFiles = "charts/synchub/files/dashboards"
	picturesStep   = 5 * time.Second
	pictureCaption = "Drawn from the dashboard's own queries over the metrics of a real hub, not by Grafana. A cluster is cut off, and another one refuses an object."
)

// monitoring is a Prometheus that scrapes the hub, and the time since when it does.
type monitoring struct {
	*servers.Prometheus
	api   prometheusv1.API
	since time.Time
}

func (d *demo) startMonitoring(ctx context.Context) error {
	server, err := servers.StartPrometheus(ctx, d.options, d.hub.metrics)
	if err != nil {
		return err
	}
	client, err := prometheusapi.NewClient(prometheusapi.Config{Address: server.URL})
	if err != nil {
		return errors.Join(err, server.Stop())
	}
	d.monitoring = &monitoring{server, prometheusv1.NewAPI(client), time.Now()}
	return d.monitoring.awaitResults(ctx, "synchub_build_info")
}

// awaitResults waits until each query has a result.
func (m *monitoring) awaitResults(ctx context.Context, queries ...string) error {
	return eventually(ctx, func(ctx context.Context) error {
		for _, query := range queries {
			if results, err := m.query(ctx, query); err != nil || len(results) == 0 {
				return errors.Join(err, fmt.Errorf("%s has no result", query))
			}
		}
		return nil
	})
}

func (m *monitoring) query(ctx context.Context, query string) (model.Vector, error) {
	result, _, err := m.api.Query(ctx, query, time.Now())
	if err != nil {
		return nil, err
	}
	vector, _ := result.(model.Vector)
	return vector, nil
}

// breakFleet makes the first cluster refuse an object, which stops a rollout, and cuts the last cluster off, so that a change waits for it.
func (d *demo) breakFleet(ctx context.Context) error {
	refusing, cutOff := d.clusters[0].name, d.clusters[len(d.clusters)-1].name
	d.screen.Println(fmt.Sprintf("\nTeam %s makes a mistake, which the cluster %s refuses and which stops the rollout:\n", d.teams[0].name, refusing))
	invalid := in(d.teams[0].name, "patch", "deployment", web, "--namespace", namespace, "--type", "merge",
		"--patch", `{"spec": {"template": {"spec": {"restartPolicy": "Never"}}}}`)
	if err := d.show(ctx, invalid); err != nil {
		return err
	}
	err := d.takeOne(ctx, step{"wait until the rollout is stopped", stepLimit, func(ctx context.Context) error {
		return d.monitoring.awaitResults(ctx, `synchub_placement_rollouts{state="stopped"} > 0`, fmt.Sprintf(`synchub_sync_failing_objects{name=%q} > 0`, refusing))
	}})
	if err != nil {
		return err
	}
	d.screen.Println(fmt.Sprintf("\nThe cluster %s is cut off, and a change of team %s waits for it:\n", cutOff, d.teams[1].name))
	if err := d.world.Targets[cutOff].Pause(); err != nil {
		return err
	}
	if err := d.show(ctx, in(d.teams[1].name, "scale", "deployment", web, "--namespace", namespace, "--replicas", "3")); err != nil {
		return err
	}
	return d.takeOne(ctx, step{"wait until the change has been waiting for two minutes", followLimit, func(ctx context.Context) error {
		return d.monitoring.awaitResults(ctx,
			fmt.Sprintf(`synchub_target_up{name=%q} == 0`, cutOff), fmt.Sprintf(`synchub_sync_oldest_pending_seconds{name=%q} > 120`, cutOff))
	}})
}

// paint draws the chart's dashboards. The dashboard of one SyncTarget shows the cluster that is cut off.
func (d *demo) paint(ctx context.Context) error {
	ctx, cancel := limited(ctx, stepLimit)
	defer cancel()
	all, err := dashboards.Read(filepath.Join(d.state.root, dashboardFiles))
	if err != nil {
		return err
	}
	name := d.clusters[len(d.clusters)-1].name
	found, err := d.monitoring.query(ctx, fmt.Sprintf("synchub_sync_target_info{name=%q}", name))
	if err != nil || len(found) != 1 {
		return errors.Join(fmt.Errorf("there are %d SyncTargets %s", len(found), name), err)
	}
	painter := pictures.Painter{
		Querier:   d.monitoring.api,
		Range:     prometheusv1.Range{Start: d.monitoring.since, End: time.Now(), Step: picturesStep},
		Variables: map[string]string{"inventory": string(found[0].Metric["inventory"]), "name": name},
		Caption:   pictureCaption,
	}
	for _, dashboard := range all {
		picture, err := painter.Paint(ctx, dashboard)
		if err != nil {
			return err
		}
		file := filepath.Join(d.pictures, "dashboard-"+strings.TrimPrefix(dashboard.UID, "synchub-")+".svg")
		if err := os.WriteFile(file, picture, 0o644); err != nil {
			return fmt.Errorf("write a picture: %w", err)
		}
		d.screen.Println("Drawn: " + d.state.relative(file))
	}
	return nil
}
