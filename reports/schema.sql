-- The results database of openbook: the contract with everybody who queries results.duckdb.
--
-- * A change of this file is a change of the contract: add columns and views freely, and raise
--   SCHEMA_VERSION in reports/store.py when a column is renamed, removed or changes its meaning.
-- * Times are UTC. Log-probabilities are nats. Fractions run from 0 to 1. Text is stored as it came, never escaped.
-- * A column of a primary key is never NULL: what does not apply is the empty string
--   (corpus of a closed-book model, column_name of a check on a whole table).
-- * There are no foreign keys: rows are replaced by key, stage by stage, while a run is still going on.

-- ---------------------------------------------------------------------------------------------------------------------
-- The file itself
-- ---------------------------------------------------------------------------------------------------------------------

CREATE TABLE IF NOT EXISTS schema_version (
    version INTEGER PRIMARY KEY,
    schema_sha256 VARCHAR NOT NULL,
    duckdb_version VARCHAR NOT NULL,
    written_at TIMESTAMP NOT NULL
);
COMMENT ON TABLE schema_version IS 'Which contract the file follows and who wrote it; one row.';
COMMENT ON COLUMN schema_version.version IS 'Number of the contract; software refuses a file with a higher number.';
COMMENT ON COLUMN schema_version.schema_sha256 IS 'SHA-256 of the schema.sql that was applied last.';
COMMENT ON COLUMN schema_version.duckdb_version IS 'DuckDB version that applied it.';
COMMENT ON COLUMN schema_version.written_at IS 'When it was applied (UTC).';

-- ---------------------------------------------------------------------------------------------------------------------
-- What ran, from what
-- ---------------------------------------------------------------------------------------------------------------------

CREATE TABLE IF NOT EXISTS runs (
    run_id VARCHAR PRIMARY KEY,
    study VARCHAR NOT NULL,
    title VARCHAR NOT NULL DEFAULT '',
    description VARCHAR NOT NULL DEFAULT '',
    seed BIGINT,
    config_json JSON,
    config_hash VARCHAR,
    status VARCHAR NOT NULL CHECK (status IN ('running', 'complete', 'failed')),
    started_at TIMESTAMP NOT NULL,
    finished_at TIMESTAMP,
    error VARCHAR,
    machine_json JSON,
    versions_json JSON
);
COMMENT ON TABLE runs IS 'One row a run of a study.';
COMMENT ON COLUMN runs.run_id IS 'Name of the run; every other table refers to it.';
COMMENT ON COLUMN runs.study IS 'Name of the study file.';
COMMENT ON COLUMN runs.title IS 'Title for people.';
COMMENT ON COLUMN runs.description IS 'What the study asks.';
COMMENT ON COLUMN runs.seed IS 'The one seed of the study.';
COMMENT ON COLUMN runs.config_json IS 'The resolved configuration, defaults included.';
COMMENT ON COLUMN runs.config_hash IS 'Hash of what in the configuration can change a result.';
COMMENT ON COLUMN runs.status IS 'running, complete or failed; nothing of a run that is not complete may be quoted.';
COMMENT ON COLUMN runs.started_at IS 'When the run began (UTC).';
COMMENT ON COLUMN runs.finished_at IS 'When it ended (UTC); NULL while it runs.';
COMMENT ON COLUMN runs.error IS 'Message of the error that ended a failed run.';
COMMENT ON COLUMN runs.machine_json IS 'Processor, cores, memory, device.';
COMMENT ON COLUMN runs.versions_json IS 'Versions of Python, the libraries and this software, with its commit.';

CREATE TABLE IF NOT EXISTS artifacts (
    fingerprint VARCHAR PRIMARY KEY,
    stage VARCHAR NOT NULL,
    name VARCHAR NOT NULL,
    created_at TIMESTAMP,
    path VARCHAR,
    bytes BIGINT,
    manifest_json JSON
);
COMMENT ON TABLE artifacts IS 'One row a finished output of a stage, addressed by what it was made from.';
COMMENT ON COLUMN artifacts.fingerprint IS 'Hash of the stage''s code, its configuration and its inputs'' fingerprints.';
COMMENT ON COLUMN artifacts.stage IS 'Stage that made it: ingest, index, train, ...';
COMMENT ON COLUMN artifacts.name IS 'Which of the stage''s outputs: the corpus, model or task it is for.';
COMMENT ON COLUMN artifacts.created_at IS 'When it was put in place (UTC).';
COMMENT ON COLUMN artifacts.path IS 'Folder below the workspace.';
COMMENT ON COLUMN artifacts.bytes IS 'Size of all its files.';
COMMENT ON COLUMN artifacts.manifest_json IS 'Its manifest: files with sizes and SHA-256, counts, parents.';

CREATE TABLE IF NOT EXISTS lineage (
    child_fingerprint VARCHAR NOT NULL,
    parent_fingerprint VARCHAR NOT NULL,
    role VARCHAR NOT NULL DEFAULT '',
    PRIMARY KEY (child_fingerprint, parent_fingerprint, role)
);
COMMENT ON TABLE lineage IS 'Which artifact was made from which.';
COMMENT ON COLUMN lineage.child_fingerprint IS 'The artifact that was made.';
COMMENT ON COLUMN lineage.parent_fingerprint IS 'An artifact or input it was made from.';
COMMENT ON COLUMN lineage.role IS 'What the parent is to the child: passages, encoder, index, questions, ...';

CREATE TABLE IF NOT EXISTS run_artifacts (
    run_id VARCHAR NOT NULL,
    fingerprint VARCHAR NOT NULL,
    PRIMARY KEY (run_id, fingerprint)
);
COMMENT ON TABLE run_artifacts IS 'Which artifacts a run made or used again.';
COMMENT ON COLUMN run_artifacts.run_id IS 'The run.';
COMMENT ON COLUMN run_artifacts.fingerprint IS 'The artifact.';

CREATE TABLE IF NOT EXISTS stage_runs (
    run_id VARCHAR NOT NULL,
    invocation_id VARCHAR NOT NULL,
    stage VARCHAR NOT NULL,
    name VARCHAR NOT NULL DEFAULT '',
    fingerprint VARCHAR,
    status VARCHAR NOT NULL,
    cache_hit BOOLEAN NOT NULL DEFAULT false,
    reason VARCHAR,
    seconds DOUBLE,
    rows_in BIGINT,
    rows_out BIGINT,
    rows_rejected BIGINT,
    started_at TIMESTAMP,
    PRIMARY KEY (run_id, invocation_id, stage, name)
);
COMMENT ON TABLE stage_runs IS 'One row a stage and call of the study: computed or found, why, how long, how many rows.';
COMMENT ON COLUMN stage_runs.run_id IS 'The run.';
COMMENT ON COLUMN stage_runs.invocation_id IS 'The call of the command; a run that was stopped and called again has several.';
COMMENT ON COLUMN stage_runs.stage IS 'The stage: ingest, index, train, evaluate, ...';
COMMENT ON COLUMN stage_runs.name IS 'What it worked on: a corpus, a model, a task.';
COMMENT ON COLUMN stage_runs.fingerprint IS 'The artifact it made or found.';
COMMENT ON COLUMN stage_runs.status IS 'complete, failed or running.';
COMMENT ON COLUMN stage_runs.cache_hit IS 'True where the artifact was there already and nothing was computed.';
COMMENT ON COLUMN stage_runs.reason IS 'Why it was computed: what differs from the nearest artifact, or that none was there.';
COMMENT ON COLUMN stage_runs.seconds IS 'Wall-clock time of this call.';
COMMENT ON COLUMN stage_runs.rows_in IS 'Rows read.';
COMMENT ON COLUMN stage_runs.rows_out IS 'Rows written.';
COMMENT ON COLUMN stage_runs.rows_rejected IS 'Rows that could not be used; they lie in rejects.';
COMMENT ON COLUMN stage_runs.started_at IS 'When it began (UTC).';

CREATE TABLE IF NOT EXISTS datasets (
    fingerprint VARCHAR PRIMARY KEY,
    kind VARCHAR NOT NULL,
    name VARCHAR NOT NULL,
    rows BIGINT NOT NULL,
    counts_json JSON
);
COMMENT ON TABLE datasets IS 'Size of every table of data among the artifacts.';
COMMENT ON COLUMN datasets.fingerprint IS 'The artifact that holds it.';
COMMENT ON COLUMN datasets.kind IS 'dump, passages, changes, questions, vectors or index.';
COMMENT ON COLUMN datasets.name IS 'The source, corpus or task.';
COMMENT ON COLUMN datasets.rows IS 'Number of rows.';
COMMENT ON COLUMN datasets.counts_json IS 'Other counts: pages, redirects, passages left out, ...';

-- ---------------------------------------------------------------------------------------------------------------------
-- Questions, predictions and their evidence
-- ---------------------------------------------------------------------------------------------------------------------

CREATE TABLE IF NOT EXISTS questions (
    run_id VARCHAR NOT NULL,
    task VARCHAR NOT NULL,
    split VARCHAR NOT NULL DEFAULT 'test',
    question_id VARCHAR NOT NULL,
    text VARCHAR NOT NULL,
    answers VARCHAR[] NOT NULL,
    titles VARCHAR[],
    PRIMARY KEY (run_id, task, split, question_id)
);
COMMENT ON TABLE questions IS 'The inputs of each task with their gold answers, as they were asked in a run.';
COMMENT ON COLUMN questions.run_id IS 'The run.';
COMMENT ON COLUMN questions.task IS 'The study''s name of the task.';
COMMENT ON COLUMN questions.split IS 'train, dev or test.';
COMMENT ON COLUMN questions.question_id IS 'Id within the task.';
COMMENT ON COLUMN questions.text IS 'The question; also a claim or the answer of a clue.';
COMMENT ON COLUMN questions.answers IS 'Gold answers, any of them right; the label of a claim.';
COMMENT ON COLUMN questions.titles IS 'Titles of the gold pages, where the task names them.';

CREATE TABLE IF NOT EXISTS predictions (
    run_id VARCHAR NOT NULL,
    model VARCHAR NOT NULL,
    task VARCHAR NOT NULL,
    corpus VARCHAR NOT NULL DEFAULT '',
    split VARCHAR NOT NULL DEFAULT 'test',
    question_id VARCHAR NOT NULL,
    text VARCHAR NOT NULL,
    normalised VARCHAR,
    logprob DOUBLE,
    cited_passage_id VARCHAR,
    score DOUBLE,
    seconds DOUBLE,
    error VARCHAR,
    cited_has_answer BOOLEAN,
    n_candidates INTEGER,
    label_probs_json JSON,
    calibrated_probs_json JSON,
    PRIMARY KEY (run_id, model, task, corpus, split, question_id)
);
COMMENT ON TABLE predictions IS 'What each model answered to each question.';
COMMENT ON COLUMN predictions.run_id IS 'The run.';
COMMENT ON COLUMN predictions.model IS 'The study''s name of the model.';
COMMENT ON COLUMN predictions.task IS 'The task.';
COMMENT ON COLUMN predictions.corpus IS 'The passage index that was searched; empty for a closed-book model.';
COMMENT ON COLUMN predictions.split IS 'train, dev or test.';
COMMENT ON COLUMN predictions.question_id IS 'The question.';
COMMENT ON COLUMN predictions.text IS 'The raw output; empty where error says why.';
COMMENT ON COLUMN predictions.normalised IS 'The output as the metric compares it.';
COMMENT ON COLUMN predictions.logprob IS 'log p(y given x), marginalised over the passages (nats).';
COMMENT ON COLUMN predictions.cited_passage_id IS 'The passage with the largest posterior; NULL for a closed-book model.';
COMMENT ON COLUMN predictions.score IS 'Score of this one prediction by the first metric of its task, 0 to 1; NULL where it has none.';
COMMENT ON COLUMN predictions.seconds IS 'Time for this question (its share of the batch).';
COMMENT ON COLUMN predictions.error IS 'Why there is no prediction; NULL where there is one.';
COMMENT ON COLUMN predictions.cited_has_answer IS 'Whether a gold answer stands in the cited passage; NULL where that is not defined for the task.';
COMMENT ON COLUMN predictions.n_candidates IS 'Distinct answers that decoding found, this one among them; NULL for a classification.';
COMMENT ON COLUMN predictions.label_probs_json IS 'Classification: the probability of every label, which sum to 1; NULL for other tasks.';
COMMENT ON COLUMN predictions.calibrated_probs_json IS 'The same at the temperature that was fitted on the dev split; NULL where none was.';

CREATE TABLE IF NOT EXISTS retrieved_passages (
    run_id VARCHAR NOT NULL,
    model VARCHAR NOT NULL,
    task VARCHAR NOT NULL,
    corpus VARCHAR NOT NULL DEFAULT '',
    split VARCHAR NOT NULL DEFAULT 'test',
    question_id VARCHAR NOT NULL,
    rank INTEGER NOT NULL,
    passage_id VARCHAR NOT NULL,
    title VARCHAR NOT NULL,
    text VARCHAR NOT NULL,
    doc_score DOUBLE,
    prior DOUBLE,
    posterior DOUBLE,
    has_answer BOOLEAN,
    PRIMARY KEY (run_id, model, task, corpus, split, question_id, rank)
);
COMMENT ON TABLE retrieved_passages IS 'The passages behind each prediction.';
COMMENT ON COLUMN retrieved_passages.run_id IS 'The run.';
COMMENT ON COLUMN retrieved_passages.model IS 'The model.';
COMMENT ON COLUMN retrieved_passages.task IS 'The task.';
COMMENT ON COLUMN retrieved_passages.corpus IS 'The passage index that was searched.';
COMMENT ON COLUMN retrieved_passages.split IS 'train, dev or test.';
COMMENT ON COLUMN retrieved_passages.question_id IS 'The question.';
COMMENT ON COLUMN retrieved_passages.rank IS 'Place by doc_score, from 0.';
COMMENT ON COLUMN retrieved_passages.passage_id IS '{source}:{page_id}:{ordinal}';
COMMENT ON COLUMN retrieved_passages.title IS 'Title of its page.';
COMMENT ON COLUMN retrieved_passages.text IS 'The passage.';
COMMENT ON COLUMN retrieved_passages.doc_score IS 'Inner product of question and passage vector.';
COMMENT ON COLUMN retrieved_passages.prior IS 'p(z given x), over the retrieved passages.';
COMMENT ON COLUMN retrieved_passages.posterior IS 'p(z given x, y) of the prediction.';
COMMENT ON COLUMN retrieved_passages.has_answer IS 'Whether a gold answer stands in the passage; NULL where that is not defined for the task.';

CREATE TABLE IF NOT EXISTS token_posteriors (
    run_id VARCHAR NOT NULL,
    model VARCHAR NOT NULL,
    task VARCHAR NOT NULL,
    corpus VARCHAR NOT NULL DEFAULT '',
    split VARCHAR NOT NULL DEFAULT 'test',
    question_id VARCHAR NOT NULL,
    tokens VARCHAR[] NOT NULL,
    posteriors FLOAT[][] NOT NULL,
    PRIMARY KEY (run_id, model, task, corpus, split, question_id)
);
COMMENT ON TABLE token_posteriors IS 'Which passage each token of a RAG-Token prediction leans on; predictions of other models have no row.';
COMMENT ON COLUMN token_posteriors.run_id IS 'The run.';
COMMENT ON COLUMN token_posteriors.model IS 'The model.';
COMMENT ON COLUMN token_posteriors.task IS 'The task.';
COMMENT ON COLUMN token_posteriors.corpus IS 'The passage index that was searched.';
COMMENT ON COLUMN token_posteriors.split IS 'train, dev or test.';
COMMENT ON COLUMN token_posteriors.question_id IS 'The question.';
COMMENT ON COLUMN token_posteriors.tokens IS 'The prediction in pieces, a piece a token; that which ends it is empty.';
COMMENT ON COLUMN token_posteriors.posteriors IS 'For every token a list over the ranks of retrieved_passages: p(z given x and the tokens so far), which sums to 1.';

-- ---------------------------------------------------------------------------------------------------------------------
-- Numbers
-- ---------------------------------------------------------------------------------------------------------------------

CREATE TABLE IF NOT EXISTS metrics (
    run_id VARCHAR NOT NULL,
    model VARCHAR NOT NULL,
    task VARCHAR NOT NULL,
    corpus VARCHAR NOT NULL DEFAULT '',
    split VARCHAR NOT NULL DEFAULT 'test',
    name VARCHAR NOT NULL,
    value DOUBLE,
    low DOUBLE,
    high DOUBLE,
    n BIGINT NOT NULL,
    n_expected BIGINT NOT NULL,
    n_excluded BIGINT NOT NULL DEFAULT 0,
    n_errors BIGINT NOT NULL DEFAULT 0,
    unit VARCHAR NOT NULL DEFAULT 'fraction',
    signature VARCHAR NOT NULL DEFAULT '',
    fingerprint VARCHAR,
    decoding_json JSON,
    PRIMARY KEY (run_id, model, task, corpus, split, name)
);
COMMENT ON TABLE metrics IS 'One row a measured number, with what is needed to trust it.';
COMMENT ON COLUMN metrics.run_id IS 'The run.';
COMMENT ON COLUMN metrics.model IS 'The model; gold for the references themselves; retriever:dense, retriever:bm25 or retriever:hybrid for a retriever that was scored alone.';
COMMENT ON COLUMN metrics.task IS 'The task.';
COMMENT ON COLUMN metrics.corpus IS 'The passage index; empty for a closed-book model.';
COMMENT ON COLUMN metrics.split IS 'train, dev or test.';
COMMENT ON COLUMN metrics.name IS 'exact_match, f1, label_accuracy, bleu_1, rouge_l, q_bleu_1, answer_in_passage, ...';
COMMENT ON COLUMN metrics.value IS 'The value; NULL where it could not be computed.';
COMMENT ON COLUMN metrics.low IS 'Lower end of the 95 % interval.';
COMMENT ON COLUMN metrics.high IS 'Upper end of the 95 % interval.';
COMMENT ON COLUMN metrics.n IS 'Questions scored.';
COMMENT ON COLUMN metrics.n_expected IS 'Questions that the split holds.';
COMMENT ON COLUMN metrics.n_excluded IS 'Questions left out by the metric''s definition (no answerable reference, ...).';
COMMENT ON COLUMN metrics.n_errors IS 'Questions that failed; counted here, never scored as 0.';
COMMENT ON COLUMN metrics.unit IS 'fraction, or another unit.';
COMMENT ON COLUMN metrics.signature IS 'Normaliser, version and options that define the number.';
COMMENT ON COLUMN metrics.fingerprint IS 'Artifact with the predictions it was computed from.';
COMMENT ON COLUMN metrics.decoding_json IS 'How the predictions were made: n_docs, beams, kind of decoding; NULL where nothing was decoded.';

CREATE TABLE IF NOT EXISTS n_docs_sweep (
    run_id VARCHAR NOT NULL,
    model VARCHAR NOT NULL,
    task VARCHAR NOT NULL,
    corpus VARCHAR NOT NULL,
    split VARCHAR NOT NULL DEFAULT 'test',
    n_docs INTEGER NOT NULL,
    name VARCHAR NOT NULL,
    value DOUBLE,
    low DOUBLE,
    high DOUBLE,
    n BIGINT NOT NULL,
    n_expected BIGINT NOT NULL,
    n_errors BIGINT NOT NULL DEFAULT 0,
    unit VARCHAR NOT NULL DEFAULT 'fraction',
    signature VARCHAR NOT NULL DEFAULT '',
    fingerprint VARCHAR,
    decoding_json JSON,
    PRIMARY KEY (run_id, model, task, corpus, split, n_docs, name)
);
COMMENT ON TABLE n_docs_sweep IS 'The metrics of a model with more and fewer passages: one retrieval, of which it reads the first n_docs.';
COMMENT ON COLUMN n_docs_sweep.run_id IS 'The run.';
COMMENT ON COLUMN n_docs_sweep.model IS 'The model; trained once, never for a number of passages.';
COMMENT ON COLUMN n_docs_sweep.task IS 'The task.';
COMMENT ON COLUMN n_docs_sweep.corpus IS 'The passage index.';
COMMENT ON COLUMN n_docs_sweep.split IS 'train, dev or test.';
COMMENT ON COLUMN n_docs_sweep.n_docs IS 'Passages a question: those that were read, and that the answers were scored with; fewer where a search by words finds no more.';
COMMENT ON COLUMN n_docs_sweep.name IS 'As in metrics.';
COMMENT ON COLUMN n_docs_sweep.value IS 'The value; NULL where it could not be computed.';
COMMENT ON COLUMN n_docs_sweep.low IS 'Lower end of the 95 % interval.';
COMMENT ON COLUMN n_docs_sweep.high IS 'Upper end of the 95 % interval.';
COMMENT ON COLUMN n_docs_sweep.n IS 'Questions scored.';
COMMENT ON COLUMN n_docs_sweep.n_expected IS 'Questions that the split holds.';
COMMENT ON COLUMN n_docs_sweep.n_errors IS 'Questions that failed; counted here, never scored as 0.';
COMMENT ON COLUMN n_docs_sweep.unit IS 'fraction, or another unit.';
COMMENT ON COLUMN n_docs_sweep.signature IS 'Normaliser, version and options that define the number.';
COMMENT ON COLUMN n_docs_sweep.fingerprint IS 'Artifact with the predictions it was computed from.';
COMMENT ON COLUMN n_docs_sweep.decoding_json IS 'As in metrics.';

CREATE TABLE IF NOT EXISTS comparisons (
    run_id VARCHAR NOT NULL,
    task VARCHAR NOT NULL,
    metric VARCHAR NOT NULL,
    model_a VARCHAR NOT NULL,
    model_b VARCHAR NOT NULL,
    difference DOUBLE,
    low DOUBLE,
    high DOUBLE,
    p_value DOUBLE,
    p_adjusted DOUBLE,
    test VARCHAR NOT NULL,
    n BIGINT NOT NULL,
    PRIMARY KEY (run_id, task, metric, model_a, model_b)
);
COMMENT ON TABLE comparisons IS 'Paired comparisons of two models on the same questions.';
COMMENT ON COLUMN comparisons.run_id IS 'The run.';
COMMENT ON COLUMN comparisons.task IS 'The task.';
COMMENT ON COLUMN comparisons.metric IS 'The metric that is compared.';
COMMENT ON COLUMN comparisons.model_a IS 'First model.';
COMMENT ON COLUMN comparisons.model_b IS 'Second model.';
COMMENT ON COLUMN comparisons.difference IS 'Value of a minus value of b.';
COMMENT ON COLUMN comparisons.low IS 'Lower end of the 95 % interval of the difference.';
COMMENT ON COLUMN comparisons.high IS 'Upper end of the 95 % interval of the difference.';
COMMENT ON COLUMN comparisons.p_value IS 'Two-sided p-value of the paired test.';
COMMENT ON COLUMN comparisons.p_adjusted IS 'p-value adjusted for the number of comparisons (Holm); NULL where not adjusted.';
COMMENT ON COLUMN comparisons.test IS 'The test and its options.';
COMMENT ON COLUMN comparisons.n IS 'Questions answered by both.';

CREATE TABLE IF NOT EXISTS swap_answers (
    run_id VARCHAR NOT NULL,
    model VARCHAR NOT NULL,
    corpus VARCHAR NOT NULL,
    answers_of VARCHAR NOT NULL,
    position VARCHAR NOT NULL,
    country VARCHAR,
    question_id VARCHAR NOT NULL,
    prediction VARCHAR,
    answers VARCHAR[] NOT NULL,
    correct BOOLEAN,
    answer_in_index BOOLEAN,
    spellable BOOLEAN,
    PRIMARY KEY (run_id, model, corpus, answers_of, question_id)
);
COMMENT ON TABLE swap_answers IS 'The index swap, one row an office, index and set of answers.';
COMMENT ON COLUMN swap_answers.run_id IS 'The run.';
COMMENT ON COLUMN swap_answers.model IS 'The model; trained once, never between the indexes.';
COMMENT ON COLUMN swap_answers.corpus IS 'The passage index that was searched.';
COMMENT ON COLUMN swap_answers.answers_of IS 'The date whose office holders count as right.';
COMMENT ON COLUMN swap_answers.position IS 'The office.';
COMMENT ON COLUMN swap_answers.country IS 'Its country.';
COMMENT ON COLUMN swap_answers.question_id IS 'The question that was asked.';
COMMENT ON COLUMN swap_answers.prediction IS 'What the model answered with this index.';
COMMENT ON COLUMN swap_answers.answers IS 'Names and aliases of the holder at that date.';
COMMENT ON COLUMN swap_answers.correct IS 'Exact match of prediction and answers; NULL where the question failed.';
COMMENT ON COLUMN swap_answers.answer_in_index IS 'Whether the answer stands in any passage of this index.';
COMMENT ON COLUMN swap_answers.spellable IS 'Whether the generator''s vocabulary can spell at least one of the answers.';

CREATE TABLE IF NOT EXISTS index_recall (
    run_id VARCHAR NOT NULL,
    corpus VARCHAR NOT NULL,
    kind VARCHAR NOT NULL,
    k INTEGER NOT NULL,
    recall DOUBLE,
    low DOUBLE,
    high DOUBLE,
    n BIGINT NOT NULL,
    min_recall DOUBLE,
    parameters_json JSON,
    PRIMARY KEY (run_id, corpus, kind, k)
);
COMMENT ON TABLE index_recall IS 'How many of the exact nearest passages the index finds, measured before anything is generated.';
COMMENT ON COLUMN index_recall.run_id IS 'The run.';
COMMENT ON COLUMN index_recall.corpus IS 'The passage index.';
COMMENT ON COLUMN index_recall.kind IS 'Kind of index: flat, hnsw, hnsw-sq8, hnsw-pq, ivf-flat, ivf-sq8, ivf-pq or ivf-rabitq.';
COMMENT ON COLUMN index_recall.k IS 'Passages that the search asked for.';
COMMENT ON COLUMN index_recall.recall IS 'Mean share of the k results whose score reaches the exact k-th best: of equal passages any will do.';
COMMENT ON COLUMN index_recall.low IS 'Lower end of the 95 % interval (bootstrap over questions).';
COMMENT ON COLUMN index_recall.high IS 'Upper end of the 95 % interval (bootstrap over questions).';
COMMENT ON COLUMN index_recall.n IS 'Questions measured: a sample of those that the study asks.';
COMMENT ON COLUMN index_recall.min_recall IS 'The gate, on the row of the k it is for: below it the study stops.';
COMMENT ON COLUMN index_recall.parameters_json IS 'Parameters of building and search that this kind of index heeds.';

CREATE TABLE IF NOT EXISTS index_sweep (
    run_id VARCHAR NOT NULL,
    corpus VARCHAR NOT NULL,
    kind VARCHAR NOT NULL,
    point INTEGER NOT NULL,
    ef_search BIGINT,
    nprobe BIGINT,
    rerank BIGINT,
    configured BOOLEAN NOT NULL,
    k INTEGER NOT NULL,
    recall DOUBLE,
    low DOUBLE,
    high DOUBLE,
    n BIGINT NOT NULL,
    min_recall DOUBLE,
    single_seconds DOUBLE,
    batched_seconds DOUBLE,
    index_bytes BIGINT,
    PRIMARY KEY (run_id, corpus, kind, point)
);
COMMENT ON TABLE index_sweep IS 'What other search settings of the same index would find and cost: recall against time and memory.';
COMMENT ON COLUMN index_sweep.run_id IS 'The run.';
COMMENT ON COLUMN index_sweep.corpus IS 'The passage index.';
COMMENT ON COLUMN index_sweep.kind IS 'Kind of index, as in index_recall.';
COMMENT ON COLUMN index_sweep.point IS 'Number of the setting within the sweep, from 0.';
COMMENT ON COLUMN index_sweep.ef_search IS 'HNSW: candidates of a search; NULL where the kind has no such setting.';
COMMENT ON COLUMN index_sweep.nprobe IS 'IVF: lists that a search visits; NULL where the kind has no such setting.';
COMMENT ON COLUMN index_sweep.rerank IS 'Compressed kinds: candidates that are scored exactly; NULL where the kind has no such setting.';
COMMENT ON COLUMN index_sweep.configured IS 'Whether this is the setting that the study uses.';
COMMENT ON COLUMN index_sweep.k IS 'Passages that the search asked for.';
COMMENT ON COLUMN index_sweep.recall IS 'As in index_recall.';
COMMENT ON COLUMN index_sweep.low IS 'Lower end of the 95 % interval (bootstrap over questions).';
COMMENT ON COLUMN index_sweep.high IS 'Upper end of the 95 % interval (bootstrap over questions).';
COMMENT ON COLUMN index_sweep.n IS 'Questions measured.';
COMMENT ON COLUMN index_sweep.min_recall IS 'The gate of the study.';
COMMENT ON COLUMN index_sweep.single_seconds IS 'Median time of one question, asked alone on one thread.';
COMMENT ON COLUMN index_sweep.batched_seconds IS 'Time a question where all are asked at once, on all threads of the run.';
COMMENT ON COLUMN index_sweep.index_bytes IS 'Memory of the index when it is searched, without vectors that are mapped from their files.';

CREATE TABLE IF NOT EXISTS training_steps (
    run_id VARCHAR NOT NULL,
    model VARCHAR NOT NULL,
    step INTEGER NOT NULL,
    loss_per_example DOUBLE,
    loss_per_token DOUBLE,
    seconds DOUBLE,
    distinct_top1 DOUBLE,
    PRIMARY KEY (run_id, model, step)
);
COMMENT ON TABLE training_steps IS 'The course of training.';
COMMENT ON COLUMN training_steps.run_id IS 'The run.';
COMMENT ON COLUMN training_steps.model IS 'The model.';
COMMENT ON COLUMN training_steps.step IS 'Optimizer step, from 1.';
COMMENT ON COLUMN training_steps.loss_per_example IS 'Negative marginal log-likelihood, mean over examples (nats).';
COMMENT ON COLUMN training_steps.loss_per_token IS 'The same, per target token (nats).';
COMMENT ON COLUMN training_steps.seconds IS 'Wall-clock time of the step.';
COMMENT ON COLUMN training_steps.distinct_top1 IS 'Distinct first passages divided by questions in the batch; near 0 means collapsed retrieval.';

CREATE TABLE IF NOT EXISTS judgements (
    run_id VARCHAR NOT NULL,
    task VARCHAR NOT NULL,
    question_id VARCHAR NOT NULL,
    model_a VARCHAR NOT NULL,
    model_b VARCHAR NOT NULL,
    dimension VARCHAR NOT NULL,
    judge VARCHAR NOT NULL,
    verdict VARCHAR NOT NULL,
    judged_at TIMESTAMP,
    PRIMARY KEY (run_id, task, question_id, model_a, model_b, dimension, judge)
);
COMMENT ON TABLE judgements IS 'Verdicts of people on pairs of predictions.';
COMMENT ON COLUMN judgements.run_id IS 'The run.';
COMMENT ON COLUMN judgements.task IS 'The task.';
COMMENT ON COLUMN judgements.question_id IS 'The question.';
COMMENT ON COLUMN judgements.model_a IS 'First model, whatever side it was shown on.';
COMMENT ON COLUMN judgements.model_b IS 'Second model.';
COMMENT ON COLUMN judgements.dimension IS 'factuality, specificity, ...';
COMMENT ON COLUMN judgements.judge IS 'Pseudonym of the judge.';
COMMENT ON COLUMN judgements.verdict IS 'a, b, both good, both poor.';
COMMENT ON COLUMN judgements.judged_at IS 'When (UTC).';

CREATE TABLE IF NOT EXISTS expected (
    run_id VARCHAR NOT NULL,
    cell VARCHAR NOT NULL,
    value DOUBLE NOT NULL,
    tolerance DOUBLE NOT NULL,
    source VARCHAR NOT NULL DEFAULT '',
    measured DOUBLE,
    verdict VARCHAR NOT NULL,
    PRIMARY KEY (run_id, cell)
);
COMMENT ON TABLE expected IS 'Values that the study says a cell should have.';
COMMENT ON COLUMN expected.run_id IS 'The run.';
COMMENT ON COLUMN expected.cell IS 'model/task/metric';
COMMENT ON COLUMN expected.value IS 'The value it should have.';
COMMENT ON COLUMN expected.tolerance IS 'How far off still counts as the same.';
COMMENT ON COLUMN expected.source IS 'Where the expected value comes from.';
COMMENT ON COLUMN expected.measured IS 'The value of this run; NULL where the cell is missing.';
COMMENT ON COLUMN expected.verdict IS 'ok, differs, cannot tell (the interval reaches into the tolerance) or missing.';

-- ---------------------------------------------------------------------------------------------------------------------
-- Checks and losses
-- ---------------------------------------------------------------------------------------------------------------------

CREATE TABLE IF NOT EXISTS checks (
    run_id VARCHAR NOT NULL,
    stage VARCHAR NOT NULL,
    name VARCHAR NOT NULL DEFAULT '',
    suite VARCHAR NOT NULL,
    expectation VARCHAR NOT NULL,
    column_name VARCHAR NOT NULL DEFAULT '',
    ordinal INTEGER NOT NULL DEFAULT 0,
    success BOOLEAN NOT NULL,
    n_rows BIGINT,
    n_unexpected BIGINT,
    observed VARCHAR,
    message VARCHAR,
    severity VARCHAR DEFAULT 'critical',
    batch VARCHAR DEFAULT '',
    PRIMARY KEY (run_id, stage, name, suite, expectation, column_name, ordinal)
);
COMMENT ON TABLE checks IS 'Results of the data checks, one row an expectation.';
COMMENT ON COLUMN checks.run_id IS 'The run.';
COMMENT ON COLUMN checks.stage IS 'The stage whose output was checked.';
COMMENT ON COLUMN checks.name IS 'The corpus, task or model.';
COMMENT ON COLUMN checks.suite IS 'The suite.';
COMMENT ON COLUMN checks.expectation IS 'The expectation.';
COMMENT ON COLUMN checks.column_name IS 'The column it is about; empty for a whole table.';
COMMENT ON COLUMN checks.ordinal IS 'Tells apart two expectations of one kind on one column, and shards; otherwise 0.';
COMMENT ON COLUMN checks.success IS 'Whether it held.';
COMMENT ON COLUMN checks.n_rows IS 'Rows that were checked.';
COMMENT ON COLUMN checks.n_unexpected IS 'Rows that broke it.';
COMMENT ON COLUMN checks.observed IS 'What was seen: a value, or the first rows that broke it.';
COMMENT ON COLUMN checks.message IS 'Why it failed, in words.';
COMMENT ON COLUMN checks.severity IS 'critical: a failure stops the study; warning and info: it is shown and the study goes on.';
COMMENT ON COLUMN checks.batch IS 'The shard that was checked; empty for a whole table.';

CREATE TABLE IF NOT EXISTS dropped_templates (
    run_id VARCHAR NOT NULL,
    name VARCHAR NOT NULL,
    template VARCHAR NOT NULL,
    dropped BIGINT NOT NULL,
    PRIMARY KEY (run_id, name, template)
);
COMMENT ON TABLE dropped_templates IS 'Templates of a dump that no handler renders, the most frequent ones; all of them, page by page, stand in pages-*.parquet of the passages artifact.';
COMMENT ON COLUMN dropped_templates.run_id IS 'The run.';
COMMENT ON COLUMN dropped_templates.name IS 'The source.';
COMMENT ON COLUMN dropped_templates.template IS 'Lower-case name of the template.';
COMMENT ON COLUMN dropped_templates.dropped IS 'How often its text was left out.';

CREATE TABLE IF NOT EXISTS rejects (
    run_id VARCHAR NOT NULL,
    stage VARCHAR NOT NULL,
    name VARCHAR NOT NULL DEFAULT '',
    source VARCHAR NOT NULL,
    row BIGINT NOT NULL,
    reason VARCHAR NOT NULL,
    text VARCHAR,
    PRIMARY KEY (run_id, stage, name, source, row, reason)
);
COMMENT ON TABLE rejects IS 'Input rows that could not be used.';
COMMENT ON COLUMN rejects.run_id IS 'The run.';
COMMENT ON COLUMN rejects.stage IS 'The stage that turned it away.';
COMMENT ON COLUMN rejects.name IS 'The source, task or model.';
COMMENT ON COLUMN rejects.source IS 'File or stage the row came from.';
COMMENT ON COLUMN rejects.row IS 'Line or record number, from 1.';
COMMENT ON COLUMN rejects.reason IS 'Why.';
COMMENT ON COLUMN rejects.text IS 'The row, or its beginning.';

CREATE TABLE IF NOT EXISTS timings (
    run_id VARCHAR NOT NULL,
    benchmark VARCHAR NOT NULL,
    name VARCHAR NOT NULL,
    value DOUBLE,
    unit VARCHAR NOT NULL DEFAULT 'seconds',
    machine_json JSON,
    PRIMARY KEY (run_id, benchmark, name)
);
COMMENT ON TABLE timings IS 'Results of benchmarks.';
COMMENT ON COLUMN timings.run_id IS 'The run of the benchmark.';
COMMENT ON COLUMN timings.benchmark IS 'The benchmark script.';
COMMENT ON COLUMN timings.name IS 'What was timed.';
COMMENT ON COLUMN timings.value IS 'The value.';
COMMENT ON COLUMN timings.unit IS 'Its unit: seconds, rows per second, ratio.';
COMMENT ON COLUMN timings.machine_json IS 'The machine it was measured on.';

-- ---------------------------------------------------------------------------------------------------------------------
-- One view for each table of the report
-- ---------------------------------------------------------------------------------------------------------------------

CREATE OR REPLACE VIEW v_metrics AS
SELECT
    m.*,
    r.study,
    r.config_hash,
    r.status AS run_status,
    concat_ws(
        '; ',
        CASE WHEN r.status = 'failed' THEN 'the run failed' WHEN r.status = 'running' THEN 'the run is not finished'
            WHEN r.status IS NULL THEN 'the run is not recorded' END,
        CASE WHEN m.n + m.n_excluded < m.n_expected
            THEN (m.n_expected - m.n - m.n_excluded) || ' of ' || m.n_expected || ' not scored' END,
        CASE WHEN m.n_errors > 0 THEN m.n_errors || ' failed' END,
        CASE WHEN m.value IS NULL OR NOT isfinite(m.value) THEN 'no value' END
    ) AS partial_reason,
    partial_reason <> '' AS partial
FROM metrics AS m
LEFT JOIN runs AS r USING (run_id);
COMMENT ON VIEW v_metrics IS 'Every metric, with partial = true and the reason where the number must not be quoted as whole.';

CREATE OR REPLACE VIEW v_open_qa AS
SELECT * FROM v_metrics WHERE name IN ('exact_match', 'regex_match', 'f1');
COMMENT ON VIEW v_open_qa IS 'Open-domain question answering: the metrics of exact match and F1.';

CREATE OR REPLACE VIEW v_generation AS
SELECT * FROM v_metrics WHERE name IN ('bleu_1', 'rouge_l', 'q_bleu_1');
COMMENT ON VIEW v_generation IS 'Generation of answers and questions: BLEU-1, ROUGE-L, Q-BLEU-1.';

CREATE OR REPLACE VIEW v_classification AS
SELECT * FROM v_metrics WHERE name LIKE 'label\_accuracy%' ESCAPE '\';
COMMENT ON VIEW v_classification IS 'Fact verification: label accuracy.';

CREATE OR REPLACE VIEW v_calibration AS
SELECT * FROM v_metrics WHERE name LIKE 'calibration\_error%' ESCAPE '\' OR name LIKE 'brier%';
COMMENT ON VIEW v_calibration IS 'Fact verification: how far the probabilities of labels can be believed, as the model gives them and, where a temperature was fitted, at that.';

CREATE OR REPLACE VIEW v_retrievers AS
SELECT *,
       substr(model, length('retriever:') + 1) AS retriever,
       regexp_replace(name, '_at_[0-9]+$', '') AS measure,
       try_cast(regexp_extract(name, '_at_([0-9]+)$', 1) AS INTEGER) AS k
FROM v_metrics
WHERE starts_with(model, 'retriever:');
COMMENT ON VIEW v_retrievers IS 'Retrievers scored alone: measure and k are the two parts of the name, as in answer_in_passage_at_20; k is NULL where there is none.';

CREATE OR REPLACE VIEW v_retrieval AS
SELECT * FROM v_metrics
WHERE NOT starts_with(model, 'retriever:')
  AND (name LIKE 'answer\_in\_%' ESCAPE '\' OR name LIKE 'recall\_at%' ESCAPE '\' OR name LIKE 'precision\_at%' ESCAPE '\'
       OR name LIKE 'correct\_without%' ESCAPE '\' OR name LIKE 'gold\_%' ESCAPE '\');
COMMENT ON VIEW v_retrieval IS 'What models read: answer or gold page among the passages of a prediction, and what is right without either.';

CREATE OR REPLACE VIEW v_diversity AS
SELECT * FROM v_metrics WHERE name LIKE 'distinct\_%' ESCAPE '\';
COMMENT ON VIEW v_diversity IS 'Diversity of generated text: distinct tri-grams divided by all.';

CREATE OR REPLACE VIEW v_other_metrics AS
SELECT * FROM v_metrics
ANTI JOIN (
    SELECT run_id, model, task, corpus, split, name FROM v_open_qa
    UNION ALL SELECT run_id, model, task, corpus, split, name FROM v_generation
    UNION ALL SELECT run_id, model, task, corpus, split, name FROM v_classification
    UNION ALL SELECT run_id, model, task, corpus, split, name FROM v_calibration
    UNION ALL SELECT run_id, model, task, corpus, split, name FROM v_retrieval
    UNION ALL SELECT run_id, model, task, corpus, split, name FROM v_retrievers
    UNION ALL SELECT run_id, model, task, corpus, split, name FROM v_diversity
) USING (run_id, model, task, corpus, split, name);
COMMENT ON VIEW v_other_metrics IS 'Metrics that no other view shows, so that none is lost.';

CREATE OR REPLACE VIEW v_answered AS
WITH asked AS (
    SELECT run_id, task, split, count(*) AS n_questions FROM questions GROUP BY ALL
), answered AS (
    SELECT run_id, model, task, corpus, split,
           count(*) AS n_predictions,
           count(*) FILTER (error IS NOT NULL) AS n_errors,
           count(*) FILTER (error IS NULL AND trim(text) = '') AS n_empty,
           avg(seconds) AS mean_seconds
    FROM predictions GROUP BY ALL
)
SELECT a.run_id, a.model, a.task, a.corpus, a.split, q.n_questions, a.n_predictions, a.n_errors, a.n_empty, a.mean_seconds,
       r.status IS DISTINCT FROM 'complete' OR a.n_errors > 0 OR q.n_questions IS DISTINCT FROM a.n_predictions AS partial
FROM answered AS a
LEFT JOIN asked AS q USING (run_id, task, split)
LEFT JOIN runs AS r USING (run_id);
COMMENT ON VIEW v_answered IS 'Questions asked, predictions stored, failures and empty outputs of each model.';

CREATE OR REPLACE VIEW v_swap AS
WITH counted AS (
    SELECT run_id, model, corpus, answers_of,
           count(*) FILTER (correct) AS n_correct,
           count(*) FILTER (correct IS NOT NULL) AS n,
           count(*) AS n_expected,
           count(*) FILTER (correct IS NULL) AS n_errors,
           count(*) FILTER (answer_in_index) AS n_answer_in_index
    FROM swap_answers GROUP BY ALL
)
SELECT c.*,
       n_correct / nullif(n, 0) AS value,
       -- Wilson score interval, 95 %
       greatest(0, (value + 1.920729410347062 / nullif(n, 0) - 1.959963984540054 * sqrt((value * (1 - value) + 0.960364705173531 / nullif(n, 0)) / nullif(n, 0)))
           / (1 + 3.841458820694124 / nullif(n, 0))) AS low,
       least(1, (value + 1.920729410347062 / nullif(n, 0) + 1.959963984540054 * sqrt((value * (1 - value) + 0.960364705173531 / nullif(n, 0)) / nullif(n, 0)))
           / (1 + 3.841458820694124 / nullif(n, 0))) AS high,
       r.status IS DISTINCT FROM 'complete' OR c.n_errors > 0 AS partial
FROM counted AS c
LEFT JOIN runs AS r USING (run_id);
COMMENT ON VIEW v_swap IS 'The index swap: share right for each index and each set of answers, with counts.';

CREATE OR REPLACE VIEW v_swap_missing AS
SELECT run_id, model, position, any_value(country) AS country, answers_of, any_value(answers) AS answers
FROM swap_answers
GROUP BY run_id, model, position, answers_of, question_id
HAVING NOT bool_or(answer_in_index);
COMMENT ON VIEW v_swap_missing IS 'Offices whose answer stands in no passage of any index, so that no model could have found it.';

CREATE OR REPLACE VIEW v_swap_unspellable AS
SELECT run_id, model, position, any_value(country) AS country, answers_of, any_value(answers) AS answers
FROM swap_answers
WHERE NOT spellable
GROUP BY run_id, model, position, answers_of, question_id;
COMMENT ON VIEW v_swap_unspellable IS 'Offices whose answer the vocabulary of the generator cannot spell.';

CREATE OR REPLACE VIEW v_n_docs_sweep AS
SELECT s.*,
       concat_ws('; ', CASE WHEN r.status IS DISTINCT FROM 'complete' THEN 'the run is not complete' END,
                 CASE WHEN s.n < s.n_expected THEN (s.n_expected - s.n) || ' of ' || s.n_expected || ' not scored' END,
                 CASE WHEN s.n_errors > 0 THEN s.n_errors || ' failed' END
       ) AS partial_reason,
       partial_reason <> '' AS partial
FROM n_docs_sweep AS s LEFT JOIN runs AS r USING (run_id);
COMMENT ON VIEW v_n_docs_sweep IS 'Metrics by the number of passages, with partial = true and the reason where a number must not be quoted as whole.';

CREATE OR REPLACE VIEW v_comparisons AS
SELECT c.*, r.status IS DISTINCT FROM 'complete' AS partial
FROM comparisons AS c LEFT JOIN runs AS r USING (run_id);
COMMENT ON VIEW v_comparisons IS 'Paired comparisons of models.';

CREATE OR REPLACE VIEW v_index_recall AS
SELECT i.*, coalesce(i.recall >= i.min_recall, true) AS passed, r.status IS DISTINCT FROM 'complete' AS partial
FROM index_recall AS i LEFT JOIN runs AS r USING (run_id);
COMMENT ON VIEW v_index_recall IS 'Approximate against exact search, with the gate.';

CREATE OR REPLACE VIEW v_index_sweep AS
WITH timed AS (
    SELECT *, coalesce(recall >= min_recall, false) AS reaches,
           -- times within 10 % are noise
           coalesce(recall >= min_recall AND single_seconds <= 1.1 * min(single_seconds) FILTER (recall >= min_recall) OVER (
               PARTITION BY run_id, corpus, kind), false) AS fast
    FROM index_sweep
)
SELECT i.* EXCLUDE (fast),
       fast AND row_number() OVER (
           PARTITION BY i.run_id, i.corpus, i.kind, fast ORDER BY i.rerank, coalesce(i.ef_search, i.nprobe), i.point
       ) = 1 AS cheapest,
       r.status IS DISTINCT FROM 'complete' AS partial
FROM timed AS i LEFT JOIN runs AS r USING (run_id);
COMMENT ON VIEW v_index_sweep IS 'The trade-off of an index: reaches marks the settings whose recall reaches the gate, cheapest the smallest setting of these whose time is within 10 % of the fastest.';

CREATE OR REPLACE VIEW v_checks AS
SELECT run_id, stage, name, suite,
       sum(n_checks)::BIGINT AS n_checks,
       sum(n_failed)::BIGINT AS n_failed,
       sum(n_warnings)::BIGINT AS n_warnings,
       sum(n_rows)::BIGINT AS n_rows,
       sum(n_failed) = 0 AS success
FROM (
    SELECT run_id, stage, name, suite, batch,
           count(*) AS n_checks,
           count(*) FILTER (NOT success AND severity = 'critical') AS n_failed,
           count(*) FILTER (NOT success AND severity <> 'critical') AS n_warnings,
           max(n_rows) AS n_rows
    FROM checks GROUP BY ALL
) GROUP BY ALL;
COMMENT ON VIEW v_checks IS 'Data checks, one row a suite over all its shards; it holds where nothing critical failed.';

CREATE OR REPLACE VIEW v_caveats AS
SELECT run_id, name, expectation, message FROM checks WHERE suite IN ('encoders', 'checkpoints') AND NOT success;
COMMENT ON VIEW v_caveats IS 'Warnings that a study overrode (encoder.allow_mismatch), and what a checkpoint does not say: every number of the run must be read with them.';

CREATE OR REPLACE VIEW v_rejects AS
SELECT run_id, stage, name, source, reason, count(*) AS n_rejected, arg_min(text, row) AS first_text, min(row) AS first_row
FROM rejects GROUP BY ALL;
COMMENT ON VIEW v_rejects IS 'Rejected rows, counted by reason.';

CREATE OR REPLACE VIEW v_stages AS
SELECT s.*,
       row_number() OVER (PARTITION BY run_id, stage, name ORDER BY started_at DESC NULLS LAST, invocation_id DESC) = 1 AS latest,
       (SELECT arg_max(c.seconds, c.started_at) FROM stage_runs AS c
        WHERE c.fingerprint = s.fingerprint AND c.stage = s.stage AND c.name = s.name
          AND NOT c.cache_hit AND c.status = 'complete') AS computed_seconds
FROM stage_runs AS s;
COMMENT ON VIEW v_stages IS 'Stages of a run: latest marks the last call of each, computed_seconds is what the artifact cost when it was made.';

CREATE OR REPLACE VIEW v_lineage AS
SELECT ra.run_id, ra.fingerprint, a.stage, a.name, a.created_at, a.path, a.bytes, d.kind, d.rows,
       l.parent_fingerprint, l.role, p.stage AS parent_stage, p.name AS parent_name
FROM run_artifacts AS ra
LEFT JOIN artifacts AS a USING (fingerprint)
LEFT JOIN datasets AS d USING (fingerprint)
LEFT JOIN lineage AS l ON l.child_fingerprint = ra.fingerprint
LEFT JOIN artifacts AS p ON p.fingerprint = l.parent_fingerprint;
COMMENT ON VIEW v_lineage IS 'Artifacts of a run with their parents.';

CREATE OR REPLACE VIEW v_sources AS
SELECT ra.run_id, ra.fingerprint, d.name AS source, d.rows AS passages,
       (d.counts_json->>'$.pages')::BIGINT AS pages,
       (d.counts_json->>'$.articles')::BIGINT AS articles,
       (d.counts_json->>'$.redirects')::BIGINT AS redirects,
       (d.counts_json->>'$.disambiguation')::BIGINT AS disambiguation,
       (d.counts_json->>'$.lists')::BIGINT AS lists,
       (d.counts_json->>'$.empty_articles')::BIGINT AS empty_articles,
       (d.counts_json->>'$.left_out_by_cap')::BIGINT AS left_out_by_cap,
       (d.counts_json->>'$.not_yet')::BIGINT AS not_yet,
       (d.counts_json->>'$.repeated')::BIGINT AS repeated,
       (d.counts_json->>'$.rejects')::BIGINT AS rejects,
       (d.counts_json->>'$.unreadable')::BIGINT AS unreadable,
       (d.counts_json->>'$.duplicates.exact')::BIGINT AS exact_duplicates,
       (d.counts_json->>'$.duplicates.near')::BIGINT AS near_duplicates,
       (d.counts_json->>'$.duplicates.boilerplate')::BIGINT AS boilerplate,
       (d.counts_json->>'$.duplicates.dropped')::BIGINT AS dropped_duplicates,
       d.counts_json->>'$.site.dbname' AS wiki,
       d.counts_json->'$.files' AS files_json
FROM run_artifacts AS ra JOIN datasets AS d USING (fingerprint)
WHERE d.kind = 'passages';
COMMENT ON VIEW v_sources IS 'Sources of a run: what became of every page, and the files they were read from with the sums that were checked.';

CREATE OR REPLACE VIEW v_expected AS
SELECT e.*, r.status IS DISTINCT FROM 'complete' AS partial
FROM expected AS e LEFT JOIN runs AS r USING (run_id);
COMMENT ON VIEW v_expected IS 'Expected and measured values of the cells that the study names.';
