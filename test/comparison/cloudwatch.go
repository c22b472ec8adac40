package main

import (
	"fmt"
	"io"
	"net/http"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/fxamacker/cbor/v2"
)

const cloudwatchNamespace = "Comparison"

var cloudwatchMetrics = []string{"cpu_usage_user", "cpu_usage_system", "disk_free", "disk_used", "mem_free", "mem_used", "net_bytes_recv", "net_bytes_sent", "swap_used", "processes"}

// yaceConfig returns a job that exports one series of each metric of each host.
func yaceConfig() string {
	var b strings.Builder
	fmt.Fprintf(&b, "apiVersion: v1alpha1\nsts-region: eu-central-1\ncustomNamespace:\n  - name: comparison\n    namespace: %s\n    regions: [eu-central-1]\n    metrics:\n", cloudwatchNamespace)
	for _, name := range cloudwatchMetrics {
		fmt.Fprintf(&b, "      - {name: %s, statistics: [Average], period: 300, length: 300}\n", name)
	}
	return b.String()
}

type cloudwatchMetric struct {
	Namespace, MetricName string
	Dimensions            []cloudwatchDimension
}

type cloudwatchDimension struct{ Name, Value string }

type cloudwatchResult struct {
	ID         string `cbor:"Id"`
	Label      string
	Timestamps []cbor.Tag
	Values     []float64
	StatusCode string
}

// cloudwatch serves what a job for a custom namespace needs of CloudWatch, STS and IAM.
// Each host has one series of each metric.
func cloudwatch(hosts int) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Smithy-Protocol") == "" {
			accountQuery(w, r)
			return
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		var answer any
		switch path.Base(r.URL.Path) {
		case "ListMetrics":
			answer = listMetrics(hosts, body)
		case "GetMetricData":
			answer = getMetricData(body)
		}
		w.Header().Set("Smithy-Protocol", "rpc-v2-cbor")
		w.Header().Set("Content-Type", "application/cbor")
		_ = cbor.NewEncoder(w).Encode(answer)
	})
}

// listMetrics returns at most 500 metrics, as CloudWatch does.
func listMetrics(hosts int, body []byte) any {
	const size = 500
	var query struct{ MetricName, NextToken string }
	if err := cbor.Unmarshal(body, &query); err != nil {
		return err
	}
	first, _ := strconv.Atoi(query.NextToken)
	last := min(hosts, first+size)
	answer := struct {
		Metrics   []cloudwatchMetric
		NextToken string `cbor:"NextToken,omitempty"`
	}{}
	for i := first; i < last; i++ {
		answer.Metrics = append(answer.Metrics, cloudwatchMetric{cloudwatchNamespace, query.MetricName, []cloudwatchDimension{
			{"InstanceId", fmt.Sprintf("i-%017d", i)}, {"Host", fmt.Sprintf("host-%d", i)},
		}})
	}
	if last < hosts {
		answer.NextToken = strconv.Itoa(last)
	}
	return answer
}

func getMetricData(body []byte) any {
	var query struct {
		MetricDataQueries []struct {
			ID string `cbor:"Id"`
		}
	}
	if err := cbor.Unmarshal(body, &query); err != nil {
		return err
	}
	now := cbor.Tag{Number: 1, Content: float64(time.Now().Unix())}
	results := make([]cloudwatchResult, len(query.MetricDataQueries))
	for i, q := range query.MetricDataQueries {
		results[i] = cloudwatchResult{ID: q.ID, Label: q.ID, Timestamps: []cbor.Tag{now}, Values: []float64{float64(i)}, StatusCode: "Complete"}
	}
	return struct{ MetricDataResults []cloudwatchResult }{results}
}

// accountQuery answers the requests for the account's number and alias.
func accountQuery(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/xml")
	switch r.FormValue("Action") {
	case "GetCallerIdentity":
		fmt.Fprintln(w, `<GetCallerIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><GetCallerIdentityResult><Account>123456789012</Account></GetCallerIdentityResult></GetCallerIdentityResponse>`)
	case "ListAccountAliases":
		fmt.Fprintln(w, `<ListAccountAliasesResponse xmlns="https://iam.amazonaws.com/doc/2010-05-08/"><ListAccountAliasesResult><IsTruncated>false</IsTruncated><AccountAliases/></ListAccountAliasesResult></ListAccountAliasesResponse>`)
	default:
		http.Error(w, "unknown action", http.StatusBadRequest)
	}
}
