"""The functions of assignment 9 return the numbers that learners work out by hand, and agree with the package."""

import torch

import transformer_lab as tl
from transformer_lab.checks import latent_cache_bytes, mixture_of_experts, route
from transformer_lab.checks.diagnose import diagnose


def test_route_gives_the_numbers_worked_out_by_hand():
    indices, weights = route.reference(torch.tensor([[[0.0, 2.0, 1.0]]]), 2)
    assert indices.tolist() == [[[1, 2]]]
    assert torch.allclose(weights, torch.tensor([0.731, 0.269]), atol=0.0005)


def test_the_mixture_gives_the_number_worked_out_by_hand():
    experts = [lambda x: x + 1, torch.zeros_like, lambda x: 3 * x]
    x, indices, weights = torch.tensor([[[10.0]]]), torch.tensor([[[2, 0]]]), torch.tensor([[[0.75, 0.5]]])
    assert mixture_of_experts.reference(x, indices, weights, experts, torch.neg).item() == 18


def test_the_cache_of_deepseek_v3_takes_70272_bytes_per_token():
    assert latent_cache_bytes.reference(61, 128, 512, 64, 1, 1, 2) == 70_272


def test_weights_without_gradients_are_refused_although_indices_have_none():
    report = diagnose(route, lambda logits, n_active: route.reference(logits.detach(), n_active))
    assert report.status == "incorrect" and "gradient" in report.message


def test_an_unused_argument_that_changes_nothing_is_not_reported():
    def answer(n_layers, n_heads, d_latent, d_rotary, seq, batch, bytes_per_value):
        return n_layers * (d_latent + 3) * seq * bytes_per_value

    report = diagnose(latent_cache_bytes, answer)
    assert report.mistake is None and "never uses `d_rotary` and `batch`." in report.message


def test_route_and_mixture_match_the_package():
    mixture = tl.MixtureOfExperts(5, 8, n_experts=6, n_active=3, n_shared=1)
    x = torch.randn(2, 7, 5)
    with torch.no_grad():
        indices, weights = route.reference(mixture.router(x), 3)
        assert torch.equal(indices, mixture.route(x)[0]) and torch.allclose(weights, mixture.route(x)[1])
        mixed = mixture_of_experts.reference(x, indices, weights, list(mixture.experts), mixture.shared)
        assert torch.allclose(mixed, mixture(x), atol=1e-6)
