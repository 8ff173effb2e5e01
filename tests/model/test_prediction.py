import numpy as np
import pytest
import torch

from carryscope.model.prediction import CHUNK, predict
from carryscope.task.questions import Questions
from carryscope.task.sampling import uniform


def slow_free_running(model, questions: Questions) -> np.ndarray:
    """The reference: write one token at a time, with a whole instrumented pass for each."""
    layout = model.config.layout
    tokens = torch.from_numpy(layout.encode(questions))
    for row in layout.answer_rows:
        tokens[:, row + 1] = model(tokens[:, : row + 1])[:, row].argmax(-1)
    return tokens[:, layout.first_row + 1 :].numpy()


@pytest.mark.parametrize("fields", [{}, {"layers": 2}, {"format": "signed"}, {"digits": 1}])
def test_free_running_is_what_one_token_at_a_time_gives(random_model, generator, fields):
    model = random_model(**fields)
    questions = uniform(generator, 50, model.config.digits)
    answers = predict(model, questions, free_running=True)
    assert (answers.predicted == slow_free_running(model, questions)).all()
    assert not answers.correct.all()


def test_teacher_forced_answers_read_the_true_digits(random_model, generator):
    model = random_model()
    questions = uniform(generator, 50, 5)
    tokens = torch.from_numpy(model.config.layout.encode(questions))
    expected = model(tokens)[:, 11:17].argmax(-1).numpy()
    assert (predict(model, questions, free_running=False).predicted == expected).all()


def test_loss_is_the_negative_log_probability_of_the_truth(random_model, generator):
    model = random_model()
    questions = uniform(generator, 20, 5)
    tokens = torch.from_numpy(model.config.layout.encode(questions))
    chances = model(tokens)[:, 11:17].double().log_softmax(-1)
    expected = -chances.gather(-1, tokens[:, 12:, None])[..., 0]
    answers = predict(model, questions, free_running=False)
    np.testing.assert_allclose(answers.loss, expected.detach().numpy(), atol=1e-4)
    np.testing.assert_allclose(
        answers.probability, chances.max(-1)[0].exp().detach().numpy(), atol=1e-4
    )


def test_chunks_join_in_order(random_model, generator):
    model = random_model()
    questions = uniform(generator, CHUNK + 3, 5)
    answers = predict(model, questions, free_running=False)
    last = predict(model, questions[CHUNK:], free_running=False)
    np.testing.assert_allclose(answers.loss[CHUNK:], last.loss, atol=1e-4)


def test_no_questions_get_no_answers(random_model, generator):
    answers = predict(random_model(), uniform(generator, 0, 5), free_running=True)
    assert answers.predicted.shape == (0, 6)
    assert answers.correct.shape == (0,)
