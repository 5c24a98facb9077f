"""Find the mistake: how large a model is."""

import sys
from copy import deepcopy

import torch
from torch import nn

from ..exercise import exercise, family


def each_parameter_once(model):
    """Count each parameter once."""
    return list(model.parameters())


def bytes_of_its_dtype(parameter):
    """Count the bytes that a number of the parameter's dtype takes."""
    return parameter.element_size()


def _count_and_bytes(tensors):
    tensors = list(tensors)
    return sum(t.numel() for t in tensors), sum(t.numel() * t.element_size() for t in tensors)


def _small_gpt(tie=True):
    """A model for counting only: two tables, a layer, a norm, and a head."""
    model = nn.ModuleDict(
        {
            "token": nn.Embedding(11, 6),
            "position": nn.Embedding(5, 6),
            "layer": nn.Sequential(nn.Linear(6, 24), nn.GELU(), nn.Linear(24, 6)),
            "norm": nn.LayerNorm(6),
            "head": nn.Linear(6, 11, bias=False),
        }
    )
    if tie:
        model["head"].weight = model["token"].weight
    return model


@exercise(
    inputs=lambda draw: (_small_gpt(),),
    axes={},
    hints=(
        "What does a `state_dict` contain: each parameter exactly once, or something else? And how many bytes does "
        "one number take?",
        "The chapter's section 7.14 shows what you would count with `state_dict()` for a tied head and a batch norm. "
        "Section 7.8 has a function that adds up the bytes, tensor by tensor.",
        "`parameters = list(model.…())`, then one sum of `….numel()`, and one of `….numel() * ….…()`",
    ),
)
def mend_model_size(model, *, counted=each_parameter_once, size=bytes_of_its_dtype):
    """Return two ints: how many parameters a module has, each counted once, and how many bytes they take."""
    parameters = counted(model)
    return sum(p.numel() for p in parameters), sum(p.numel() * size(p) for p in parameters)


mend_model_size.example("a head that is not tied", _small_gpt(tie=False), plain=True)
mend_model_size.example("a tied model in half precision", _small_gpt().half(), plain=True)
mend_model_size.example(
    "a batch norm and its buffers", nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 2)), plain=True
)
mend_model_size.example("bfloat16", nn.Linear(5, 3, dtype=torch.bfloat16))
mend_model_size.example("float64", nn.Linear(4, 7, dtype=torch.float64))


@mend_model_size.probe
def mixed_precision(draw):
    """matrices in half precision between norms in float32"""
    model = nn.Sequential(nn.LayerNorm(6), nn.Linear(6, 9, dtype=torch.float16), nn.LayerNorm(9))
    return (model,)


@mend_model_size.probe
def frozen(draw):
    """frozen parameters"""
    model = nn.Sequential(nn.Linear(3, 5), nn.Linear(5, 2))
    model[0].requires_grad_(False)
    return (model,)


@mend_model_size.probe
def layer_used_twice(draw):
    """a layer that is used twice"""
    layer = nn.Linear(4, 4)
    return (nn.ModuleList([layer, nn.ReLU(), layer]),)


@mend_model_size.probe(plain=True)
def parameter_in_no_layer(draw):
    """a parameter outside all layers"""
    model = nn.Sequential(nn.Linear(3, 5), nn.ReLU())
    model.register_parameter("scale", nn.Parameter(torch.ones(7)))
    return (model,)


mend_model_size.example(
    "a model on the device meta", nn.Sequential(nn.Linear(3, 8), nn.Linear(8, 2)).to_empty(device="meta")
)
mend_model_size.example("a module without parameters", nn.Sequential(nn.ReLU(), nn.BatchNorm1d(4, affine=False)))


@mend_model_size.right
class RightAnswers:
    def in_a_loop(model):
        count = size = 0
        for _, parameter in model.named_parameters():
            count += parameter.nelement()
            size += parameter.nelement() * parameter.dtype.itemsize
        return count, size

    def by_identity(model):
        seen = {}
        for module in model.modules():
            for parameter in module._parameters.values():
                if parameter is not None:
                    seen[id(parameter)] = parameter
        return [sum(p.numel() for p in seen.values()), sum(p.nbytes for p in seen.values())]

    def sets_of_parameters(model):
        parameters = set(dict(model.named_parameters(remove_duplicate=False)).values())
        return len([1 for p in parameters for _ in range(p.numel())]), sum(
            p.element_size() * p.numel() for p in parameters
        )


@mend_model_size.property
def eight_bytes_in_float64(function, model):
    """In float64 every parameter takes eight bytes."""
    count, size = function(deepcopy(model).double())
    return size == 8 * count


@mend_model_size.property
def buffers_do_not_count(function, model):
    """One more buffer changes nothing: it is not learned."""
    with_buffer = deepcopy(model)
    with_buffer.register_buffer("steps", torch.zeros(7))
    return function(with_buffer) == function(deepcopy(model))


@mend_model_size.property
def second_names_do_not_count(function, model):
    """A second name for a layer of the model changes nothing."""
    with_second_name = nn.ModuleDict({"first": deepcopy(model)})
    with_second_name["second"] = with_second_name["first"]
    return function(with_second_name) == function(deepcopy(model))


@mend_model_size.wrong(stage="counted")
class Counted:
    def everything_saved(model):
        """You count what `state_dict()` contains. This dict is made for saving: it lists a tied matrix under both of
        its names, and it includes buffers, which are not learned. In this way, you count 163 million parameters in
        GPT-2 instead of 124 million. Which method of a module returns each parameter once?"""
        return list(model.state_dict().values())

    def tied_under_both_names(model):
        """You count a tied matrix under each of its names: a parameter that is used twice counts twice. You no longer
        count buffers, so half of the repair is done. Your function goes through all names, or through all modules, and
        reaches the tied matrix twice. How can you tell that a second name leads to an object that you have already
        counted?"""
        return [parameter for _, parameter in model.named_parameters(remove_duplicate=False)]

    def buffers_counted(model):
        """{Tied matrices are right, but} you count buffers: the running mean of a batch norm, its running variance, and
        a counter of steps. No optimizer changes them. Buffers are stored with the model, but they are not learned."""
        return list(model.parameters()) + list(model.buffers())

    def once_for_each_module_around(model):
        """You go through all submodules and call `parameters()` of each, which also returns the parameters of *its*
        submodules. So a parameter counts once for every module that contains it: by your count, the layer of the
        chapter's section 7.14 has 716 parameters instead of 244. Call `parameters()` of only one module, the
        outermost."""
        return [parameter for module in model.modules() for parameter in module.parameters()]

    def trainable_alone(model):
        """Frozen parameters are missing from your count: you count only those with `requires_grad`. Freezing a layer
        does not make the model smaller. The task asks for the size of the model, not for what training changes."""
        return [parameter for parameter in model.parameters() if parameter.requires_grad]

    def head_never_counted(model):
        """You leave out every parameter whose name contains `head`. {For a tied head this is right by luck, but a head
        that is not tied has its own matrix, which is then missing.} The name does not show whether the head is tied."""
        return [parameter for name, parameter in model.named_parameters() if "head" not in name]


@mend_model_size.wrong(stage="size")
class Size:
    def four_bytes(parameter):
        """You count four bytes for every number, as in float32. In half precision, a model has the same number of
        parameters, but they take half as many bytes. Read the size of a number from each tensor."""
        return 4

    def bits(parameter):
        """You count bits instead of bytes. The numbers in `float32` and in `finfo(…).bits` count bits; eight bits are a
        byte."""
        return 8 * parameter.element_size()

    def sixteen_bits_or_four_bytes(parameter):
        """Your function knows only two sizes of a number: two bytes for the 16-bit dtypes, and four for all others. A
        number in float64 takes eight bytes, and there are dtypes of one byte. If you read the size of a number from
        each tensor, you need no list of dtypes."""
        return 2 if parameter.dtype in (torch.float16, torch.bfloat16) else 4

    def four_bytes_in_float32_alone(parameter):
        """Your function knows only two sizes of a number: four bytes for float32, and two for all other dtypes. A
        number in float64 takes eight bytes, and there are dtypes of one byte. If you read the size of a number from
        each tensor, you need no list of dtypes."""
        return 4 if parameter.dtype == torch.float32 else 2


@mend_model_size.wrong
class WrongAnswers:
    def as_given(model):
        """Your function returns the same as the given program. Three things are wrong: a tied table counts twice, the
        buffers of a batch norm count too, and in half precision there are too many bytes. Print the name of each tensor
        in the `state_dict`. Which of these tensors are parameters, and which have already appeared under another
        name?"""
        numbers = sum(tensor.numel() for tensor in model.state_dict().values())
        return numbers, 4 * numbers

    def bytes_of_all_that_is_saved(model):
        """{The number of parameters is right.} The bytes are still those of the `state_dict`, with tied matrices
        counted twice and with buffers. Add up the bytes of the same tensors that you count."""
        count = mend_model_size.reference(model)[0]
        return count, sum(tensor.numel() * tensor.element_size() for tensor in model.state_dict().values())

    def all_saved_but_the_head(model):
        """You count what `state_dict()` contains, except every tensor whose name contains `head`. This is right for a
        tied head, but a head that is not tied has its own matrix, which is then missing; and you still count the
        buffers of a batch norm. The name does not show whether a matrix is tied."""
        return _count_and_bytes([tensor for name, tensor in model.state_dict().items() if "head" not in name])

    def of_the_outermost_alone(model):
        """You count only the parameters that the outermost module itself owns; those of its submodules are missing.
        Usually it owns none: a model's parameters belong to its layers. Look at what `recurse` does in `parameters`."""
        return _count_and_bytes(model.parameters(recurse=False))

    def those_with_a_gradient(model):
        """You find no parameters at all, in any model. This happens if you count only parameters with a gradient:
        before the first backward pass, no parameter has a gradient. The size of a model does not depend on whether it
        has been trained."""
        return _count_and_bytes([])

    def those_called_weight(model):
        """You count only parameters whose name contains `weight`. Biases are missing, and so is every parameter with a
        different name. A tensor is not a parameter because of its name."""
        return _count_and_bytes([parameter for name, parameter in model.named_parameters() if "weight" in name])

    def one_of_each_shape(model):
        """You treat two tensors of the same shape as the same tensor, and count them once. The two names of a tied
        matrix do lead to the same shape, but the weight and the bias of a norm also have the same shape, and they are
        two tensors. When do two names refer to one parameter?"""
        return _count_and_bytes(list({tuple(parameter.shape): parameter for parameter in model.parameters()}.values()))

    def one_at_each_address(model):
        """You distinguish parameters by their address in memory. On the device `meta`, tensors have no memory: all of
        them have an address of 0, so you count only one. Two names refer to one parameter when they are the same
        *object*."""
        return _count_and_bytes(list({parameter.data_ptr(): parameter for parameter in model.parameters()}.values()))

    def matrices_alone(model):
        """Biases and norms are missing from your count: you count only matrices, as the rule of thumb does. Here each
        parameter counts, whatever its shape."""
        return _count_and_bytes([parameter for parameter in model.parameters() if parameter.ndim > 1])

    def embeddings_left_out(model):
        """The embeddings are missing from your count. Some papers leave them out to compare models; in GPT-2 they are
        nearly a third of the parameters. Embeddings are learned, so they count, even if a tied head uses them too."""
        tables = {id(module.weight) for module in model.modules() if isinstance(module, nn.Embedding)}
        return _count_and_bytes([parameter for parameter in model.parameters() if id(parameter) not in tables])

    def two_bytes(model):
        """You count two bytes for every number, as in half precision. In float32 a number takes four bytes. Read the
        size of a number from each tensor."""
        return mend_model_size.reference(model, size=lambda parameter: 2)

    def bytes_of_training(model):
        """You count four times the bytes of the parameters. Training with Adam needs this much memory: weights,
        gradients, and the optimizer's two running means. The task asks for the parameters alone."""
        return mend_model_size.reference(model, size=lambda parameter: 4 * parameter.element_size())

    def two_or_four_bytes(model):
        """Your function knows only two sizes of a number: two bytes for float16, four for all other dtypes. A number in
        bfloat16 also takes two bytes, and a number in float64 takes eight. Read the size of a number from each
        tensor."""
        return mend_model_size.reference(model, size=lambda parameter: 2 if parameter.dtype == torch.float16 else 4)

    def first_type_for_all(model):
        """You use the dtype of the first parameter for all parameters. In mixed precision a model may keep its norms in
        float32 and its matrices in 16 bits. Add up the bytes tensor by tensor."""
        parameters = list(model.parameters())
        count = sum(parameter.numel() for parameter in parameters)
        return count, count * parameters[0].element_size() if parameters else 0

    def bytes_with_buffers(model):
        """{The count is right, but} your bytes are those of parameters *and* buffers. Both take space on a disk, but
        the task asks for the parameters. Add up the bytes of the same tensors that you count."""
        return mend_model_size.reference(model)[0], _count_and_bytes([*model.parameters(), *model.buffers()])[1]

    def bytes_of_the_trainable_alone(model):
        """{The count is right, but} your bytes are only those of the trainable parameters: frozen parameters are
        missing, although they take as much memory as the others. Add up the bytes of the same tensors that you
        count."""
        return mend_model_size.reference(model)[0], _count_and_bytes(Counted.trainable_alone(model))[1]

    def weight_and_bias_of_each_module(model):
        """You collect the `weight` and the `bias` of each module. A tied matrix is then counted once for each of its
        modules, and a parameter with a different name is not counted at all. The model itself can return all of its
        parameters, each once: with which method?"""
        tensors = [getattr(module, name, None) for module in model.modules() for name in ("weight", "bias")]
        return _count_and_bytes([tensor for tensor in tensors if tensor is not None])

    def type_of_the_module(model):
        """You read `model.dtype`, but a PyTorch module has no such attribute: only the models of some libraries have
        it. And a single attribute could name only one dtype, while the parameters of one model may have different
        dtypes. Which object stores the dtype of a parameter?"""
        count = mend_model_size.reference(model)[0]
        return count, count * model.dtype.itemsize

    def bytes_of_one_number_each(model):
        """For each tensor you count the bytes of a single number: you add up `element_size()`, the size of one number.
        A tensor of 66 numbers takes 66 times as many bytes. By what must you multiply the size of one number?"""
        count = mend_model_size.reference(model)[0]
        return count, sum(parameter.element_size() for parameter in model.parameters())

    def size_of_the_python_objects(model):
        """Your bytes are those of the Python objects: `sys.getsizeof` measures the small object that *points* to the
        numbers, not the numbers. It returns the same number for a bias and for a large matrix. Which method of a tensor
        returns the size of one of its numbers?"""
        return mend_model_size.reference(model)[0], sum(sys.getsizeof(parameter) for parameter in model.parameters())

    def last_parameter_alone(model):
        """You return the size of only the last tensor: each pass of the loop overwrites the result of the passes before
        it. Which operator adds to a variable, and which replaces its value?"""
        return _count_and_bytes(list(model.parameters())[-1:])

    def count_alone(model):
        """You return one number, the count. The task asks for two numbers: how many parameters there are, and how many
        bytes they take. `return a, b` returns both."""
        return mend_model_size.reference(model)[0]

    def rows_counted(model):
        """You count the rows of each tensor: `len` returns the length of the first axis, and so does `shape[0]`. {The
        bytes are right.} A matrix with 11 rows and 6 columns has 66 numbers; which method returns this number?"""
        return sum(len(parameter) for parameter in model.parameters()), mend_model_size.reference(model)[1]

    def bytes_before_the_count(model):
        """You return the bytes first and the count second. The task asks for the count, then the bytes."""
        return mend_model_size.reference(model)[::-1]

    def tensors_counted(model):
        """You count the *tensors* that `model.parameters()` returns. A tensor contains many numbers, and each of them
        is learned. Which method of a tensor returns how many numbers it contains?"""
        return len(list(model.parameters())), mend_model_size.reference(model)[1]

    @family(
        size_in_megabytes=(1e6, "megabytes"),
        size_in_mebibytes=(2**20, "units of 1024 · 1024 bytes"),
    )
    def in_another_unit(unit, model):
        """You return the size in {}. The task asks for bytes: divide only where you print the number, so that no digits
        are lost."""
        count, size = mend_model_size.reference(model)
        return count, size / unit

    def walked_through_once(model):
        """{Your count is right, but} your bytes are always 0. `model.parameters()` is an iterator, which works only
        once: the first sum uses it up, and nothing is left for the second. How can you keep the parameters, so that
        both sums can use them?"""
        parameters = model.parameters()
        return sum(parameter.numel() for parameter in parameters), sum(parameter.nbytes for parameter in parameters)

    def walked_through_once_for_the_bytes(model):
        """{Your bytes are right, but} your count is always 0. `model.parameters()` is an iterator, which works only
        once: the first sum uses it up, and nothing is left for the second. How can you keep the parameters, so that
        both sums can use them?"""
        parameters = model.parameters()
        size = sum(parameter.nbytes for parameter in parameters)
        return sum(parameter.numel() for parameter in parameters), size
